#!/usr/bin/env bash
# Instructions a training step of 64 callbacks (C3), counted by callgrind as in instructions.sh: 64 that declare only
# on_fit_start against none. They must cost nothing: less than one instruction for each of them.
#   hooks.sh <build folder> [hooked]      hooked: also what 64 callbacks cost that do declare on_train_batch_end
set -euo pipefail
build=$(cd "$1" && pwd) hooked=${2:-}
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export XDG_CACHE_HOME=$work OMP_NUM_THREADS=1
manifest() { # manifest <callbacks> <plugin>
  printf 'extends = "%s"\nlogger = []\ncheckpoint = []\n[run]\nname = "hooks"\ndir = "%s"\n' "$here/step.toml" "$work/runs"
  for ((i = 0; i < $1; ++i)); do
    printf '[[callback]]\nplugin = "%s"\nname = "c%d"\n' "$build/tests/fixtures/bench/$2.so" "$i"
  done
}
manifest 0 none >"$work/none.toml"
manifest 64 bench.unhooked >"$work/unhooked.toml"
manifest 64 bench.hooked >"$work/hooked.toml"
lhost() { # lhost <none|unhooked|hooked> <steps> [program in front]
  "${@:3}" "$build/bin/lhost" run -q "$work/$1.toml" "trainer.max_steps=$2"
}
count() { # count <none|unhooked|hooked> <steps>
  lhost "$1" "$2" valgrind --tool=callgrind --callgrind-out-file=/dev/null >"$work/$1.$2.log" 2>&1 ||
    { cat "$work/$1.$2.log"; exit 1; }
  awk '/Collected/ {print $NF}' "$work/$1.$2.log" >"$work/$1.$2"
}
a_step() { echo $(( ($(cat "$work/$1.250") - $(cat "$work/$1.50")) / 200 )); }
kinds="none unhooked"
[ -z "$hooked" ] || kinds+=" hooked"
for k in $kinds; do lhost "$k" 1; done # describes the plugins once, outside the counted runs
for steps in 50 250; do for k in $kinds; do count "$k" "$steps"; done & done
wait
none=$(a_step none) extra=$(( $(a_step unhooked) - none ))
echo "instructions a step: $none without callbacks; 64 callbacks that declare no hook of the step: $extra more"
if [ -n "$hooked" ]; then
  more=$(( $(a_step hooked) - none ))
  echo "64 callbacks with one hook: $more more, $((more / 64)) for each call"
fi
[ "$extra" -lt 64 ] && [ "$extra" -gt -64 ] || { echo "that is more than one instruction for each callback"; exit 1; }
