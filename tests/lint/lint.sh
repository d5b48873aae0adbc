#!/usr/bin/env bash
# lint.sh <rule> [build folder]: rules of the tree that a compiler does not know. Prints what breaks the rule.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1
rule=$1 build=${2:-}
bad=0
complain() { echo "$*"; bad=1; }
sources() { find "$@" -type f \( -name '*.h' -o -name '*.hpp' -o -name '*.c' -o -name '*.cpp' \) | sort; }
# Prints `file:line:include` for each include directive of the given files.
includes() { grep -HnoE '^ *# *include +[<"][^>"]+[>"]' "$@" | sed -E 's/# *include +//'; }
# forbid <why> <pattern> <file>...
forbid() {
  local why=$1 pattern=$2 found
  shift 2
  [ $# -gt 0 ] || { complain "no files for: $why"; return; }
  found=$(grep -HnE -- "$pattern" "$@") && complain "$why"$'\n'"$found"
}

# A layer of the host may include the layers named here, and itself.
declare -A below=(
  [base]="" [manifest]="base" [plugin]="base manifest" [kinds]="base manifest plugin engine"
  [launch]="base kinds"
  [assembly]="base manifest plugin kinds launch train engine lhost" [train]="base kinds launch engine"
  [cli]="base manifest plugin kinds launch assembly train engine" [engine]=""
)
layers() {
  local layer include file target
  for layer in "${!below[@]}"; do
    [ -d "host/$layer" ] || complain "host/$layer is gone: update tests/lint/lint.sh"
    while IFS=: read -r file _ include; do
      [[ $include =~ ^\ *\"([a-z_]+)/ ]] || continue
      target=${BASH_REMATCH[1]}
      [[ " ${below[$layer]} $layer lhost " == *" $target "* ]] || complain "$file: layer $layer includes $include"
    done < <(includes $(sources "host/$layer"))
  done
  while IFS=: read -r file _ include; do # of the engine the host sees its table only
    [[ $include = *'"engine/'* && $include != *'"engine/engine.h"'* ]] && complain "$file includes $include"
  done < <(includes $(sources host | grep -v '^host/engine/'))
  forbid "only host/engine may include LibTorch, and no part of the host the SDK" \
    '#include <(torch|ATen|c10|caffe2)/' $(sources host | grep -v '^host/engine/')
  forbid "the host does not use the SDK" '#include [<"]lhost/sdk/' $(sources host)
}

# Plugins and models see plugin-api, the libraries they name, the files beside them and their kind's common/.
plugins() {
  local file include beside
  while IFS=: read -r file _ include; do
    [[ $include =~ \"(.*)\" && $include != *.pb.h\" ]] || continue
    beside=${BASH_REMATCH[1]}
    [ -e "$(dirname "$file")/$beside" ] && [[ ${beside#../common/} != */* ]] ||
      complain "$file includes $include, which lies neither beside it nor in ../common"
  done < <(includes $(sources plugins models))
  forbid "plugin-api includes itself only" '#include [<"](manifest|plugin|base|kinds|train|engine)/' $(sources plugin-api)
  forbid "torch.hpp is the only header of the SDK that includes LibTorch" '#include <(torch|ATen|c10)/' \
    $(sources plugin-api | grep -v '/sdk/torch\.hpp$')
}

single_users() {
  forbid "toml++ is known to host/manifest/parse.cpp alone" '#include <toml' \
    $(sources host plugins models plugin-api | grep -v '^host/manifest/parse\.cpp$')
  forbid "loading is the business of host/plugin" '\b(dlopen|dlsym|dlmopen) *\(|#include <boost/dll' \
    $(sources host plugins models plugin-api | grep -v '^host/plugin/')
  forbid "plugins write to the run's log or the terminal service, never to a stream" \
    '\bstd::(cout|cerr|clog)\b|\b(printf|puts|putchar) *\(|\b(fprintf|fputs) *\((stdout|stderr)' $(sources plugins models)
}

# The host knows no plugin by name: share/lhost/defaults.toml is the only place. The few names that are also words of
# the manifest or of the ABI are not looked for.
names() {
  local name also_words=" cpu single step constant torch threads "
  while read -r name; do
    [[ $also_words == *" $name "* ]] && continue
    forbid "the host names the plugin $name" "^([^/]|/[^/])*\"$name\"" $(sources host) # not in comments
  done < <(find plugins models -mindepth 2 -name CMakeLists.txt -not -path '*/template/*' -printf '%h\n' | xargs -n 1 basename | sort -u)
}

sizes() {
  local file n
  while read -r file; do
    n=$(wc -l <"$file")
    [ "$n" -le 500 ] || complain "$file has $n lines; 500 is the wall"
  done < <(sources host plugin-api plugins models tests)
}

exports() {
  local so symbols n=0
  while read -r so; do
    n=$((n + 1))
    symbols=$(nm -D --defined-only "$so" | awk '{print $3}' | xargs)
    [ "$symbols" = lh_plugin_v1 ] || complain "$so exports: $symbols"
  done < <(find "$build/lib/lhost/plugins/1" -name '*.so')
  [ "$n" -ge 20 ] || complain "only $n plugins in $build"
}

# What is built can be moved: no path of this machine in it.
rpaths() {
  local file
  while read -r file; do
    readelf -d "$file" | grep -E 'R(UN)?PATH' && complain "$file has an RPATH"
  done < <(find "$build/lib/lhost" "$build/bin" -type f \( -name '*.so' -o -name lhost \))
}

# Every file or folder that a README names exists.
readmes() {
  local readme path
  for readme in README.md $(find plugin-api host plugins models tests configs -name README.md); do
    while read -r path; do
      [ -e "$path" ] || [ -e "$(dirname "$readme")/$path" ] || complain "$readme names $path, which does not exist"
    done < <(grep -oE '`(\.ci|scripts|host|plugin-api|plugins|models|configs|tests)/[A-Za-z0-9_./-]*`' "$readme" | tr -d '`')
  done
}

# tests/cases.md: one row an id and one state a row; the tests that it names exist; no test has an id without a row.
cases() {
  local problems
  [ -s tests/cases.md ] || { complain "tests/cases.md is gone"; return; }
  problems=$({
    sources tests | xargs cat | tr '\n' ' ' | grep -oE '\bTYPED_TEST\([^)]*|\bTEST(_[FP])?\([^)]*' | sed -E 's/^[A-Z_]+\( *//; s/ *, */./; s/ *$//; s/^/T /'
    find tests -name CMakeLists.txt -exec cat {} + | grep -oE '\b(add_test\(NAME|lhost_add_python_test\() *[A-Za-z0-9_.]+' | sed -E 's/.*[ (]/T /'
    sed -nE 's/^foreach\(name ([a-z_ ]+)\)$/\1/p' tests/e2e/CMakeLists.txt | tr ' ' '\n' | sed 's/^/T E2e./'
    grep -n '^| F' tests/cases.md | sed 's/^/R /'
  } | awk -F'\t' '
    sub(/^T /, "") { test[$0] = 1; next }
    {
      line = $0; sub(/^R /, "", line); at = line; sub(/:.*/, "", at); sub(/^[0-9]+:/, "", line)
      place = "tests/cases.md:" at ": "
      n = split(line, cell, / *\| */)
      if (n != 6 || cell[2] !~ /^F-[0-9][0-9][0-9]$/) { print place "expected | F-000 | name | what must hold | state |"; next }
      if (row[cell[2]]++) print place cell[2] " comes twice"
      state = cell[5]
      if (state !~ /^(shown by `|waits: .|does not apply: .)/ || state ~ /.(shown by `|waits: |does not apply: )/) {
        print place "expected one of: shown by `Suite.Name`; waits: ...; does not apply: ..."; next
      }
      if (state !~ /^shown by/) next
      sub(/; not yet: .*/, "", state); sub(/^shown by /, "", state)
      n = split(state, name, /, /)
      for (i = 1; i <= n; ++i) {
        if (name[i] !~ /^`[A-Za-z0-9_]+\.[A-Za-z0-9_]+`$/) { print place "expected `Suite.Name`, found " name[i]; continue }
        gsub(/`/, "", name[i])
        if (!(name[i] in test)) print place "there is no test " name[i]
      }
    }
    END {
      for (t in test)
        for (rest = t; match(rest, /F[0-9][0-9][0-9]_/); rest = substr(rest, RSTART + 5))
          if (!(("F-" substr(rest, RSTART + 1, 3)) in row)) print "tests/cases.md has no row of the test " t
    }')
  [ -z "$problems" ] || complain "$problems"
}

"$rule"
exit $bad
