# Sourced by the scripts beside it: one visible step, one build. All output goes to stderr; stdout belongs to lhost.
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
jobs=$(nproc)

fail() {
  printf 'lhost: %s\n' "$1" >&2
  shift
  [ $# = 0 ] || printf '  %s\n' "$@" >&2
  exit 3
}

# step <label> <command>...: runs the command with its output in a log, shows that it lives (a line that is repainted
# on a terminal, a new line now and then on a pipe), and shows the log's end if it fails. Less than a second: silent.
# watch=<folder> step ...: shows how much lies in the folder instead of the command's last line.
# lines=<n> step ...: how many lines of a failed command's output are shown (60).
step() {
  local label=$1 log pulse rc=0 start=$SECONDS
  shift
  log=$(mktemp)
  show_pulse "$label" "$log" "$BASHPID" &
  pulse=$!
  "$@" >"$log" 2>&1 </dev/null || rc=$?
  kill "$pulse" 2>/dev/null || true
  wait "$pulse" 2>/dev/null || true
  if [ -t 2 ]; then printf '\r\e[K' >&2; fi
  if [ "$rc" != 0 ]; then
    tail -n "${lines:-60}" "$log" >&2
    printf 'lhost: %s failed (exit %s)\n' "$label" "$rc" >&2
  elif [ $((SECONDS - start)) -ge 2 ]; then
    printf '%s: done in %d s\n' "$label" $((SECONDS - start)) >&2
  fi
  rm -f "$log"
  return "$rc"
}

last_line() { tail -c 300 "$1" | tr '\r' '\n' | grep -v '^ *$' | tail -n 1; }

show_pulse() {
  local label=$1 log=$2 owner=$3 pause=1 tick=0 line never
  exec {never}<> <(:) # reading from it waits without a child process that would outlive us
  while ! read -rt "$pause" -u "$never" && kill -0 "$owner" 2>/dev/null; do
    tick=$((tick + 1))
    if [ -n "${watch:-}" ]; then
      line="$(du -sm "$watch" 2>/dev/null | cut -f 1) MiB"
    else
      line=$(last_line "$log")
    fi
    if [ -t 2 ]; then
      printf '\r\e[K%s  %d s  %.60s' "$label" "$tick" "$line" >&2
    elif [ "$tick" = 1 ] || [ $((tick % 20)) = 0 ]; then
      printf '%s  %d s  %.80s\n' "$label" "$tick" "$line" >&2
    fi
  done
}

# build <preset> <target> [label]: configures what is not configured yet, builds what changed. One at a time.
build() {
  local preset=$1 target=$2 label=${3:-building lhost ($1)} dir=$root/build/$1
  mkdir -p "$dir"
  (
    flock 9
    if [ ! -e "$dir/build.ninja" ] || [ "$(cat "$dir/libtorch.txt" 2>/dev/null)" != "${LHOST_LIBTORCH:-}" ]; then
      step "configuring ($preset)" cmake -S "$root" --preset "$preset" || exit 1
      printf '%s\n' "${LHOST_LIBTORCH:-}" >"$dir/libtorch.txt"
    fi
    step "$label" ninja -C "$dir" -j "$jobs" "$target"
  ) 9>"$dir/.lock"
}
