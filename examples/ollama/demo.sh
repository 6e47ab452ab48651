#!/usr/bin/env bash
# make demo-ollama: a real Ollama with a tiny real model. Its server is killed
# hard, so that its runner survives with the model loaded: once the keeper ends
# the runner, once `hob down` does, and an Ollama started by hand is left alone.
set -euo pipefail
cd "$(dirname "$0")/../.."
.ci/setup tmux=tmux g++=g++
[ -x bin/hob ] || make build
ollama=$(examples/ollama/install.sh)
. examples/lib.sh
PATH=$ollama:$PATH
export OLLAMA_KITCHEN=$work/kitchen
by_hand_port=${BY_HAND_PORT:-18435}

# runner_of PID prints the pid of the runner that an Ollama server has.
runner_of() { cat "/proc/$1/task/"*/children | tr ' ' '\n' | grep -m 1 .; }
has_model() { [ "$(field model state)" = completed ]; }
is_gone() { ! kill -0 "$1" 2>/dev/null; }

# serve GRACE starts the example, gets a completion and kills the server hard.
# It sets server and runner.
serve() {
  export OLLAMA_GRACE=$1
  show hob up examples/ollama/hob.yaml
  wait_until 120 "the job that makes the model" has_model
  server=$(field ollama pid)
  show hob pilot ask --url "$(field ollama url)" --model tiny "Who are you?"
  runner=$(runner_of "$server")
  printf 'server %s, runner %s: %s\n' "$server" "$runner" "$(tr '\0' ' ' <"/proc/$runner/cmdline" | cut -c -60)…"
  show kill -KILL "$server"
  wait_until 60 "the server to be gone" is_gone "$server"
  kill -0 "$runner" || fail "the runner has ended with its server; it was to survive"
  echo "the server is gone, and its runner $runner is alive with the model loaded"
}

# reported WHAT PATTERN fails unless the server's report, as JSON without blanks, has PATTERN.
reported() {
  hob report ollama/ollama --json | tr -d ' \n' | grep -Eq "$2" ||
    fail "the report does not say $1: $(hob report ollama/ollama --json)"
}
has_report() { hob report ollama/ollama --json | grep -q "\"reason\": *\"$1\""; }

say "First pass: nobody types anything, and the keeper sweeps after the grace of 5s"
serve 5s
wait_until 60 "the keeper to end the runner" is_gone "$runner"
wait_until 30 "the report" has_report exited
show hob report ollama/ollama
reported "that the keeper ended the runner" "\"pid\":$runner,[^}]*\"fate\":\"(terminated|killed)\""
show hob ps

say "Second pass: an Ollama that was started by hand, and hob down within the grace"
mkdir "$work/by-hand"
HOME=$work/by-hand OLLAMA_MODELS=$work/by-hand/models OLLAMA_HOST=127.0.0.1:$by_hand_port ollama serve >"$work/by-hand/log" 2>&1 &
by_hand=$!
strangers+=("$by_hand")
by_hand_answers() { OLLAMA_HOST=127.0.0.1:$by_hand_port ollama list; }
wait_until 30 "the Ollama started by hand to answer" by_hand_answers
echo "started by hand: pid $by_hand, ollama serve at 127.0.0.1:$by_hand_port"
serve 60s
show hob down ollama
is_gone "$runner" || fail "the runner is alive after hob down"
reported "that hob down ended the runner" '"reason":"down"'
reported "that hob down ended the runner" "\"pid\":$runner,[^}]*\"fate\":\"(terminated|killed)\""
reported "that the other Ollama looks like ours" "\"lookalikes\":.*\"pid\":$by_hand,[^}]*\"command\""
by_hand_answers >/dev/null || fail "the Ollama that was started by hand does not answer any more"
say "The Ollama started by hand, pid $by_hand, is alive, answers, and is named as a look-alike"
