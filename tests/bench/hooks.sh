#!/usr/bin/env bash
# Instructions a training step of 64 callbacks (C3) on the mock engine, counted by callgrind: (count at 3 000 steps - count
# at 1 000) / 2 000. Callbacks that declare only on_fit_start must cost nothing: less than one instruction for all of them.
# Counted is lhost's own code: what malloc needs in the mock's arithmetic depends on the heap's layout. Each run has a
# folder of its own, so that all start alike.
#   hooks.sh <build folder>
set -euo pipefail
build=$(cd "$1" && pwd)
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export XDG_CACHE_HOME=$work
manifest() { # manifest <callbacks> <plugin>
  printf 'extends = "%s"\n[run]\ndir = "%s"\n' "$here/mock.toml" "$work/runs"
  for ((i = 0; i < $1; ++i)); do
    printf '[[callback]]\nplugin = "%s"\nname = "c%d"\n' "$build/tests/fixtures/bench/bench.$2.so" "$i"
  done
}
count() { # count <kind> <steps>
  valgrind --tool=callgrind --callgrind-out-file="$work/out" "$build/tests/bench/mock_run" "$work/$1.toml" \
    "trainer.max_steps=$2" "run.dir=$work/$1.$2" >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
  callgrind_annotate --show-percs=no --threshold=100 "$work/out" |
    awk -v own="[$build/" 'index($0, own) {gsub(",", "", $1); n += $1} END {printf "%d\n", n}'
}
declare -A total
for kind in none unhooked hooked; do
  manifest "$([ $kind = none ] && echo 0 || echo 64)" $kind >"$work/$kind.toml"
  "$build/tests/bench/mock_run" "$work/$kind.toml" trainer.max_steps=1 # describes the plugins outside the counted runs
  short=$(count $kind 1000) long=$(count $kind 3000)
  total[$kind]=$((long - short))
done
extra=$((total[unhooked] - total[none])) hook=$(((total[hooked] - total[none]) / 2000 / 64))
echo "instructions in 2 000 steps: ${total[none]} without callbacks; $extra more with 64 that declare no hook of the step"
echo "a hook that is declared and does nothing: $hook instructions a call"
[ "$hook" -gt 0 ] || { echo "the hook was not called: this measured nothing"; exit 1; }
[ ${extra#-} -lt 2000 ] || { echo "that is an instruction a step or more"; exit 1; }
