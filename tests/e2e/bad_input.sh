#!/usr/bin/env bash
# What goes wrong outside of the manifest: data, checkpoints, folders, disks. One clear error, the right exit code,
# result.json, nothing lost.  bad_input.sh <build folder>
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
cp "$configs"/data/digits-* "$work"
run() { lhost run "$configs/digits.toml" run.dir="$work/runs" trainer.max_epochs=2 "$@"; }
failed() { # the newest run says so
  [ "$(json "$(newest)/result.json" '["outcome"]')" = failed ] || fail "result.json says otherwise"
}
images=$work/digits-train-images.idx3-ubyte.gz labels=$work/digits-train-labels.idx1-ubyte.gz

# data
expect 2 "nothing.gz does not exist" run data.train.images="$work/nothing.gz"
[ -z "$(newest 2>/dev/null)" ] || fail "a run folder was made"
head -c 20000 "$images" >"$work/short.gz"
expect 1 "short.gz" run data.train.images="$work/short.gz"
failed
cp "$images" "$work/damaged.gz"
printf '\377\377\377\377' | dd of="$work/damaged.gz" bs=1 seek=9000 conv=notrunc status=none
expect 1 "damaged.gz" run data.train.images="$work/damaged.gz"
expect 1 "outside 0..4" run data.classes=5
echo "not an idx file" >"$work/text.gz"
expect 1 "text.gz" run data.train.images="$work/text.gz"
expect 1 "$work" run data.train.images="$work"
expect 1 "holds 360 labels for the 1437 images" run data.train.labels="$work/digits-test-labels.idx1-ubyte.gz"
printf 'a,b,label\n1,2,0\n1,2\n' >"$work/ragged.csv"
expect 1 "ragged.csv:3: found 2 cells, expected 3" lhost run "$configs/digits.toml" run.dir="$work/runs" 'run.stages=["fit"]' data.use=csv \
  data.train="$work/ragged.csv" model.inputs=2
failed

# checkpoints
expect 0 "test" run
good=$(newest)
expect 1 "mismatched  net.0.weight: the file has [128, 64], the model [32, 64]" \
  run 'model.hidden=[32, 64]' --resume "$(ls "$good"/checkpoints/*.ckpt)"
expect 1 "unexpected  net.6.weight" run 'model.hidden=[128]' --resume "$(ls "$good"/checkpoints/*.ckpt)"
head -c 5000 "$(ls "$good"/checkpoints/*.ckpt)" >"$work/cut.ckpt"
expect 1 "cut.ckpt" run --resume "$work/cut.ckpt"
expect 1 "text.gz" run --resume "$work/text.gz"
expect 2 "no such file" run --resume "$work/none.ckpt"
expect 2 "no checkpoint in" run --resume last run.name=never-ran

# memory
expect 3 "can't allocate memory" run 'model.hidden=[100000000000]'

# folders and disks
odd=$work/$(printf 'b\377ad')
mkdir "$odd" && cp "$configs/digits.toml" "$odd" && cp -r "$configs/data" "$odd"
expect 2 "is not UTF-8" lhost run "$odd/digits.toml" run.dir="$work/runs"
expect 3 "Not a directory" lhost run "$configs/digits.toml" run.dir="$work/text.gz"
limited() { (ulimit -f "$1"; shift; "$@"); } # no file grows beyond that many KiB: as a disk that is full
expect 3 "cannot write" limited 100 lhost run "$configs/digits.toml" run.dir="$work/runs" trainer.max_epochs=2
failed
[ -z "$(find "$(newest)" -name '*.lhost-tmp-*')" ] || fail "a half-written file is left"
if mkdir "$work/disk" && mount -t tmpfs -o size=600k tmpfs "$work/disk" 2>/dev/null; then
  # room for two checkpoints of 210 KiB beside each other, not for three
  expect 3 "No space left on device" lhost run "$configs/digits.toml" run.dir="$work/disk/runs" 'checkpoint[0].save_top_k=-1' \
    trainer.max_epochs=5
  last=$(ls -t "$work"/disk/runs/*/version_0/checkpoints/*.ckpt | head -1)
  expect 0 "test" lhost test "$configs/digits.toml" run.dir="$work/runs" --checkpoint "$last"
  [ "$(json "$work"/disk/runs/*/version_0/result.json '["outcome"]')" = failed ] || fail "no result.json on the full disk"
  umount "$work/disk"
else
  echo "skipped: a full tmpfs (mount is not permitted here)"
fi
expect 0 "test" lhost test "$configs/digits.toml" run.dir="$work/runs" --checkpoint "$(ls "$good"/checkpoints/*.ckpt)"
finish
