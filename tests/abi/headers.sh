#!/usr/bin/env bash
# headers.sh <include folder> <compiler> <standard> <c|sdk>: every public header compiles alone, without a warning.
# c: the contract, which also has no padding. sdk: what needs no LibTorch.
set -uo pipefail
include=$1 compiler=$2 standard=$3 set=$4
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
case $standard in c11) language=c ;; *) language=c++ ;; esac
case $set in
  c)
    headers=("$include"/lhost/*.h)
    [ "$language" = c++ ] || headers+=("$include"/lhost/sdk/*.h)
    flags=(-Wpadded -Wpedantic)
    ;;
  sdk)
    mapfile -t headers < <(ls "$include"/lhost/sdk/*.hpp | grep -vE '/(torch|unit|model|batch_norm)\.hpp$')
    flags=()
    ;;
esac
[ ${#headers[@]} -ge 10 ] || { echo "only ${#headers[@]} headers in $include"; exit 1; }
bad=0
for header in "${headers[@]}"; do
  printf '#include <%s>\n#include <%s>\n' "${header#"$include"/}" "${header#"$include"/}" >"$work/alone"
  "$compiler" -x "$language" -std="$standard" -fsyntax-only -Wall -Wextra -Wshadow -Werror -Wno-unused-function \
    -Wno-unused-variable "${flags[@]}" -I"$include" "$work/alone" || { echo "not alone: $header"; bad=1; }
done
exit $bad
