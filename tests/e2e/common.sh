# Sourced by the scripts of this folder: lhost of the build folder $1, a work folder that goes away, small checks.
set -uo pipefail
build=$(cd "$1" && pwd)
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
configs=$here/../../configs
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export XDG_CACHE_HOME=$work/cache XDG_DATA_HOME=$work/data
unset LHOST_SET LHOST_PLUGIN_PATH
lhost() { "$build/bin/lhost" "$@"; }
failures=0
fail() {
  echo "FAILED: $*"
  failures=$((failures + 1))
}
# expect <exit code> <text that the output holds> <command...>: no stack trace, no abort, one clear error
expect() {
  local code=$1 text=$2 got
  shift 2
  "$@" >"$work/out" 2>&1
  got=$?
  [ "$got" = "$code" ] || fail "exit $got instead of $code: $*
$(cat "$work/out")"
  grep -qF -- "$text" "$work/out" || fail "no '$text' in the output of: $*
$(cat "$work/out")"
  ! grep -qE 'terminate called|what\(\)|core dumped|Traceback|frame #' "$work/out" || fail "a stack trace: $(cat "$work/out")"
}
# the newest run folder below $work/runs
newest() { ls -td "$work"/runs/*/version_* | head -1; }
json() { python3 -c 'import json,sys; d=json.load(open(sys.argv[1])); print(eval("d"+sys.argv[2]))' "$1" "$2"; }
finish() {
  [ "$failures" = 0 ] && echo "all right" || { echo "$failures failed"; exit 1; }
}
