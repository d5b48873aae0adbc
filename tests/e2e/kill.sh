#!/usr/bin/env bash
# kill -9 at a hundred random moments of a run that saves after every step: each time the next one finds a checkpoint
# that loads, and goes on from it.  kill.sh <build folder> [times]
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
times=${2:-100}
run() {
  exec "$build/bin/lhost" run -q "$configs/digits.toml" run.dir="$work/runs" run.name=kill 'run.stages=["fit"]' trainer.max_epochs=-1 \
    scheduler.use=constant scheduler.warmup=0 'checkpoint[0].every_n_steps=1' 'checkpoint[0].save_last=true' trainer.num_sanity_val_steps=0 "$@"
}
(run) &
sleep 1.5
kill -INT $!
wait $!
[ $? = 130 ] || fail "the first life"
steps() { python3 -c 'import json,sys; print(json.load(open(sys.argv[1]))["last"])' "$work/runs/kill/version_0/checkpoints.json"; }
RANDOM=17
saved=0
for ((i = 1; i <= times; ++i)); do
  run --resume last >"$work/out" 2>&1 &
  pid=$!
  sleep "0.$((25 + RANDOM % 30))"
  kill -9 "$pid" 2>/dev/null || { fail "life $i ended by itself: $(cat "$work/out")"; break; }
  wait "$pid" 2>/dev/null
  [ -s "$work/out" ] && { fail "life $i: $(cat "$work/out")"; break; }
  [ -e "$work/runs/kill/version_0/$(steps)" ] || { fail "after kill $i the newest checkpoint is not there"; break; }
done
# The next life clears away what the last one was killed over.
(run --resume last) &
sleep 1.5
kill -INT $!
wait $!
[ $? = 130 ] || fail "the last life"
[ "$(ls "$work/runs/kill" | wc -l)" = 1 ] || fail "resuming made another version"
lhost run "$configs/digits.toml" run.dir="$work/runs" run.name=kill 'run.stages=["test"]' --resume last >"$work/out" 2>&1 ||
  fail "test of the last checkpoint: $(cat "$work/out")"
tail -1 "$work/out"
left=$(find "$work/runs" -name '*.lhost-tmp-*' | wc -l)
[ "$left" = 0 ] || fail "$left half-written files are left"
finish
