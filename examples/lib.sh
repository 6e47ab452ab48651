# What both demos share: sourced by them, from the project's folder.
# Everything that a demo makes is in one temporary folder.

work=$(mktemp -d "${TMPDIR:-/tmp}/hob-demo.XXXXXX")
export HOB_HOME=$work/state XDG_RUNTIME_DIR=$work/run
mkdir -m 0700 "$XDG_RUNTIME_DIR"
PATH=$PWD/bin:$PATH
strangers=()

say() { printf '\n\033[1m# %s\033[0m\n' "$*"; }

# show prints a command as one would type it, and runs it.
show() {
  printf '\033[36m$ %s\033[0m\n' "$*"
  "$@"
}

# field TASK NAME prints a value of `hob ps --json`.
field() {
  hob ps --json | tr -d '\n' | sed 's/}, *{/}\n{/g' |
    grep "\"task\": *\"$1\"" | sed -n "s/.*\"$2\": *\"\{0,1\}\([^\",}]*\).*/\1/p"
}

# wait_until SECONDS WHAT COMMAND… waits for COMMAND to succeed.
wait_until() {
  local end=$((SECONDS + $1)) what=$2
  shift 2
  until "$@" >/dev/null 2>&1; do
    [ "$SECONDS" -lt "$end" ] || fail "waited in vain for: $what"
    sleep 0.1
  done
}

fail() {
  printf '\n\033[31mdemo: %s\033[0m\n' "$*" >&2
  exit 1
}

# clean_up ends what this demo started: runs through hob, strangers as its own children.
clean_up() {
  local code=$? pid
  trap - EXIT
  hob down --all --quiet >/dev/null 2>&1 || true
  for pid in "${strangers[@]}"; do
    kill "$pid" 2>/dev/null || true
    wait "$pid" 2>/dev/null || true
  done
  if [ "$code" = 0 ]; then rm -rf "$work"; else echo "demo: what there was is kept in $work" >&2; fi
  exit "$code"
}
trap clean_up EXIT
trap 'exit 130' INT TERM
