#!/usr/bin/env bash
# SIGINT and SIGTERM at many moments of a run, from start-up to the test stage: exit code 130 or 143, a result.json that says
# so, a checkpoint from which the run goes on.  signals.sh <build folder> [times]
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
times=${2:-30}
run() {
  exec "$build/bin/lhost" run "$configs/digits-convnet.toml" run.dir="$work/runs" run.name=signal trainer.max_epochs=8 trainer.threads=1 "$@"
}
phases=""
for ((i = 1; i <= times; ++i)); do
  signal=INT code=130
  [ $((i % 3)) = 0 ] && signal=TERM code=143
  rm -rf "$work/runs"
  run >"$work/out" 2>&1 &
  pid=$!
  sleep "$(awk -v i="$i" -v n="$times" 'BEGIN {printf "%.3f", 0.03 + 1.6 * i / n}')"
  kill -"$signal" "$pid" 2>/dev/null
  wait "$pid"
  got=$?
  if [ "$got" = 0 ]; then phases+=" done"; continue; fi # it was faster
  [ "$got" = "$code" ] || { fail "exit $got after SIG$signal: $(cat "$work/out")"; continue; }
  grep -qE 'terminate called|frame #' "$work/out" && fail "a stack trace: $(cat "$work/out")"
  result=$(ls "$work"/runs/signal/version_0/result.json 2>/dev/null)
  if [ -z "$result" ]; then phases+=" start"; continue; fi # before the run began: nothing to lose
  [ "$(json "$result" '["outcome"]')" = interrupted ] || fail "result.json after SIG$signal: $(cat "$result")"
  phases+=" $(json "$result" '["error"]["where"].split(",")[0].replace(" ", "-")')"
  if [ "$(json "$result" '["stages"].get("fit", {}).get("global_step", 0)')" -gt 0 ]; then
    [ -e "$(json "$result" '["checkpoints"]["last"]')" ] || fail "no checkpoint after SIG$signal: $(cat "$result")"
    (run --resume last) >"$work/out" 2>&1 || fail "going on after SIG$signal: $(cat "$work/out")"
  fi
done
echo "hit in:$phases"
finish
