#!/usr/bin/env bash
# The two configs that a newcomer runs first reach what their comments promise, on three seeds, and the same seed gives
# the same bits.  digits.sh <build folder>
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
check() { # check <config> <least test accuracy>
  for seed in 1 2 42; do
    expect 0 "test" lhost run "$configs/$1.toml" run.dir="$work/runs" run.seed="$seed"
    accuracy=$(json "$(newest)/result.json" '["metrics"]["test"]["test_acc"]')
    echo "$1 seed $seed: test accuracy $accuracy, $(json "$(newest)/result.json" '["stages"]["fit"]["seconds"]') s of training"
    awk -v a="$accuracy" -v b="$2" 'BEGIN {exit !(a >= b)}' || fail "$1 seed $seed reaches $accuracy, expected $2"
  done
}
check digits 0.90
check digits-convnet 0.96

same() { # the same seed twice: the same checkpoint, byte for byte
  lhost run -q "$configs/$1.toml" run.dir="$work/same" trainer.max_epochs=3 "${@:2}" || fail "run"
  lhost run -q "$configs/$1.toml" run.dir="$work/same" trainer.max_epochs=3 "${@:2}" || fail "run"
  cmp "$work"/same/"$1"*/version_0/checkpoints/*.ckpt "$work"/same/"$1"*/version_1/checkpoints/*.ckpt ||
    fail "two runs of $1 with one seed differ"
  rm -rf "$work/same"
}
same digits 'run.name="digits"'
same digits-convnet
finish
