#!/usr/bin/env bash
# make demo: a recipe from start to sweep, with the engine that hob carries, and
# a stranger's process of the same command line that must be left alone.
set -euo pipefail
cd "$(dirname "$0")/.."
.ci/setup tmux=tmux
[ -x bin/hob ] || make build
. examples/lib.sh

say "The recipe"
show cat examples/pilot/hob.yaml

say "Up: each task in a pane of tmux, the server when the job is done, ready when it answers"
show hob up examples/pilot/hob.yaml
show hob ps

say "A completion: real, if small"
url=$(field chat url) pid=$(field chat pid)
[ -n "$url" ] && [ -n "$pid" ] || fail "hob ps does not know the server's url and pid"
show hob pilot ask --url "$url" "What is a sweep?" | tee "$work/answer"
grep -q "hob looks for what outlived its pane" "$work/answer" || fail "the server gave no completion"

# Somebody else's process, whose command line reads exactly as the server's: a
# shell that runs a script named like the server's first argument.
mapfile -d '' -t argv <"/proc/$pid/cmdline"
mkdir "$work/elsewhere"
mkfifo "$work/elsewhere/forever"
echo 'read -r _ <forever' >"$work/elsewhere/${argv[1]}"
(cd "$work/elsewhere" && exec -a "${argv[0]}" /bin/sh "${argv[@]:1}") &
stranger=$!
strangers+=("$stranger")
same_command_line() { cmp -s "/proc/$stranger/cmdline" "/proc/$pid/cmdline"; }
wait_until 60 "the stranger to look like the server" same_command_line
say "A stranger with the same command line: pid $stranger"

say "Down: the tree is captured, asked, ended, and the host is searched once more"
show hob down
show hob report

say "The stranger"
kill -0 "$stranger" 2>/dev/null || fail "the stranger was ended"
hob report --json | tr -d ' \n' | grep -q "\"lookalikes\":\[[^]]*\"pid\":$stranger," || fail "the report does not name the stranger"
echo "pid $stranger is alive, and the report names it as a look-alike"
