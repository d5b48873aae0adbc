#!/usr/bin/env bash
# install_test.sh <build> <source> <work folder>: the installed tree works from another folder, and code outside this
# tree is built against it and runs: a model and a callback in C++, a logger in C, all from the templates; strategies in C,
# one of them on two ranks.
set -euo pipefail
build=$1 source=$2 work=$3
unset LHOST_PLUGIN_PATH LHOST_SET
export XDG_CACHE_HOME=$work/cache NO_COLOR=1
rm -rf "$work"
mkdir -p "$work"
cd "$work"
say() { printf '== %s\n' "$*"; }
lose() { printf 'FAILED: %s\n' "$*"; exit 1; }
expect() { grep -qE -- "$2" "$1" || { cat "$1"; lose "$1 has no line like $2"; }; }

say "install, then move"
cmake --install "$build" --prefix "$work/first" >install.log || { cat install.log; lose install; }
mv first moved
lhost=$work/moved/bin/lhost
"$lhost" version >version.txt
expect version.txt 'lhost [0-9]+\.[0-9]+\.[0-9]+'
"$lhost" list >list.txt
for name in mlp adamw idx csv single; do expect list.txt "\\b$name\\b"; done
! grep -rqF "$build" moved/lib/cmake || lose "the CMake package names the build folder"

# outside <template folder> <name>: copies a template out of the tree and builds it against the installation.
outside() {
  say "building $1 outside the tree"
  cp -r "$source/$1" "$2"
  rm -rf "$2/build"
  cmake -G Ninja -S "$2" -B "$2/build" -DCMAKE_PREFIX_PATH="$work/moved" >"$2.log" 2>&1 || { cat "$2.log"; lose "$2: configure"; }
  cmake --build "$2/build" >"$2.log" 2>&1 || { cat "$2.log"; lose "$2: build"; }
  [ "$(wc -l <"$2/CMakeLists.txt")" -le 6 ] || lose "$1/CMakeLists.txt has more than 6 lines"
}
outside models/template mymodel
outside plugins/template/c clogger
outside plugins/template/cpp callback
model=$(echo mymodel/build/*.so) logger=$(echo clogger/build/*.so) callback=$(echo callback/build/*.so)
for so in "$model" "$logger" "$callback"; do
  [ "$(nm -D --defined-only "$so" | awk '{print $3}' | xargs)" = lh_plugin_v1 ] || lose "$so exports more than it should"
done

say "training with all of them"
cp -r "$source/configs" .
cat >own.toml <<END
extends = "configs/digits.toml"
[run]
name = "own"
dir = "runs"
[trainer]
max_epochs = 2
[model]
plugin = "$model"
[[logger]]
use = "csv"
[[logger]]
plugin = "$logger"
[[callback]]
plugin = "$callback"
END
"$lhost" run own.toml >run.log 2>&1 || { cat run.log; lose "lhost run"; }
ls runs/own/version_0 >files.txt
expect files.txt '^result\.json$'
expect files.txt '^manifest\.resolved\.toml$'

# The csv logger's rows are exact; the template writes nine digits of the same numbers.
python3 - runs/own/version_0/metrics.csv runs/own/version_0/log.txt <<'END' || lose "the C logger's records differ from the csv logger's"
import csv, sys
rows = [(int(r["global_step"]), {k: "%.9g" % float(v) for k, v in list(r.items())[4:] if v})
        for r in csv.DictReader(open(sys.argv[1]))]
lines = [line.rstrip("\n").split("  ") for line in open(sys.argv[2])]
records = [(int(l[0].split()[1]), dict(p.rsplit(" ", 1) for p in l[1:])) for l in lines]
assert len(rows) >= 2 and rows == records, (rows[:3], records[:3])
END

say "the model's own manifest"
(cd mymodel && "$lhost" run my.toml) >my.log 2>&1 || { cat my.log; lose "models/template/my.toml"; }
expect my.log '^test .*test_acc'

# same_training <run> <run>: every tensor of the last checkpoint bit for bit, and the metrics.
same_training() {
  python3 - "$@" <<'END'
import pathlib, sys, zipfile
def tensors(run):
    (file,) = pathlib.Path(run, "checkpoints").glob("*.ckpt")
    with zipfile.ZipFile(file) as z:
        return {n.split("/", 1)[1]: z.read(n) for n in z.namelist() if "/data/" in n}
def rows(run):
    return [line.split(",")[:1] + line.split(",")[4:] for line in open(run + "/metrics.csv")]
one, other = map(tensors, sys.argv[1:])
assert len(one) > 6 and one == other, sorted(n for n in one if one[n] != other.get(n))
assert rows(sys.argv[1]) == rows(sys.argv[2])
END
}

say "a strategy in C against the installed headers, on LibTorch"
mkdir strategy
cp "$source/tests/mock_engine/plugins/strategy/single_c.c" strategy
cat >strategy/CMakeLists.txt <<'END'
cmake_minimum_required(VERSION 3.25)
project(single_c C)
find_package(lhost REQUIRED)
lhost_add_plugin(strategy single_c SOURCES single_c.c)
END
cmake -G Ninja -S strategy -B strategy/build -DCMAKE_PREFIX_PATH="$work/moved" >strategy.log 2>&1 || { cat strategy.log; lose "strategy: configure"; }
cmake --build strategy/build >strategy.log 2>&1 || { cat strategy.log; lose "strategy: build"; }
for name in single single_c; do
  rm -rf "runs/$name"
  plugin=
  [ $name = single ] || plugin=strategy.plugin=strategy/build/single_c.so
  "$lhost" run configs/digits.toml run.name=$name run.dir=runs trainer.max_epochs=3 $plugin >$name.log 2>&1 || { cat $name.log; lose "strategy $name"; }
done
expect single_c.log '  single_c  '
same_training runs/single/version_0 runs/single_c/version_0 || lose "the strategy in C trains to other weights"

say "a vendor's strategy for several ranks, by cc and the installed headers alone"
cc -Wall -Wextra -Wpedantic -Werror -shared -fPIC -std=c11 -fvisibility=hidden -I moved/include \
  "$source/tests/install/strategy/acme.allreduce.c" -o strategy/acme.allreduce.so || lose "acme.allreduce.c does not compile"
for name in ddp acme; do
  plugin=
  [ $name = ddp ] || plugin=strategy.plugin=strategy/acme.allreduce.so
  "$lhost" run configs/digits-ddp.toml run.name=$name run.dir=runs trainer.max_epochs=3 trainer.devices=2 model.dropout=0 \
    $plugin >$name.log 2>&1 || { cat $name.log; lose "strategy $name on two ranks"; }
  expect $name.log 'cpu x2'
done
expect acme.log '  acme\.allreduce  '
same_training runs/ddp/version_0 runs/acme/version_0 || lose "acme.allreduce trains to other weights than ddp"

say "a program with the host inside runs the same manifest"
cp -r "$source/tests/install/embed" .
cmake -G Ninja -S embed -B embed/build -DCMAKE_PREFIX_PATH="$work/moved" >embed.log 2>&1 || { cat embed.log; lose "embed: configure"; }
cmake --build embed/build >embed.log 2>&1 || { cat embed.log; lose "embed: build"; }
embed/build/embed "$work/moved" own.toml >embed.txt || { cat embed.txt; lose "embed"; }
expect embed.txt '^done 1$'

say "a wrong option of the own model is refused like any other's"
rc=0
"$lhost" run own.toml model.hiden=1 >refused.log 2>&1 || rc=$?
[ $rc = 2 ] || { cat refused.log; lose "exit $rc, expected 2"; }
expect refused.log 'did you mean "hidden"'
[ ! -e runs/own/version_2 ] || lose "a refused run left a folder"
