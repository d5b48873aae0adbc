#!/usr/bin/env bash
# Instructions that one training step costs, lhost against the hand-written loop of raw_loop.cpp, counted by callgrind:
# (count at 250 steps - count at 50 steps) / 200, so that start-up cancels. Exact, whatever else the machine does.
#   instructions.sh <build folder> [limit]      with a limit: exit 1 if lhost executes more than that above the loop
set -euo pipefail
build=$(cd "$1" && pwd) limit=${2:-}
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
data=$here/../../configs/data
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export XDG_CACHE_HOME=$work OMP_NUM_THREADS=1
lhost() { # lhost <steps> <program and arguments in front>
  local steps=$1
  shift
  "$@" "$build/bin/lhost" run -q "$here/step.toml" "trainer.max_steps=$steps" "run.dir=$work/runs" 'logger=[]' 'checkpoint=[]'
}
raw() {
  local steps=$1
  shift
  "$@" "$build/tests/bench/raw_loop" "$data/digits-train-images.idx3-ubyte.gz" "$data/digits-train-labels.idx1-ubyte.gz" "$steps" 0
}
count() { # count <lhost|raw> <steps>
  "$1" "$2" valgrind --tool=callgrind --callgrind-out-file="$work/$1.$2.out" >"$work/$1.$2.log" 2>&1 ||
    { cat "$work/$1.$2.log"; exit 1; }
  awk '/Collected/ {print $NF}' "$work/$1.$2.log" >"$work/$1.$2"
}
loss() { sed -n 's/.*"loss": \([-0-9.e]*\).*/\1/p'; }

lhost 250 >/dev/null # describes the plugins once, outside the counted runs
last=$(ls -d "$work"/runs/step/version_* | tail -1)
a=$(loss <"$last/result.json") b=$(raw 250 | loss)
awk -v a="$a" -v b="$b" 'BEGIN {exit !((a - b) ^ 2 < 1e-14)}' ||
  { echo "not the same work: lhost's loss after 250 steps is $a, the loop's $b"; exit 1; }
{ count lhost 50; count lhost 250; } & { count raw 50; count raw 250; } & wait
mine=$(( ($(cat "$work/lhost.250") - $(cat "$work/lhost.50")) / 200 ))
theirs=$(( ($(cat "$work/raw.250") - $(cat "$work/raw.50")) / 200 ))
echo "instructions a step: lhost $mine, hand-written loop $theirs, difference $((mine - theirs)); loss $a in both"
[ -z "$limit" ] || [ $((mine - theirs)) -le "$limit" ] || { echo "more than $limit above the loop"; exit 1; }
