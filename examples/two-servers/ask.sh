#!/bin/sh
# Asks the server at each MODEL PORT pair for a completion, and prints its words.
set -eu
while [ $# -gt 1 ]; do
  printf '%s says: ' "$1"
  curl --fail --silent --show-error "http://127.0.0.1:$2/v1/chat/completions" \
    --data "{\"model\":\"$1\",\"messages\":[{\"role\":\"user\",\"content\":\"What is a recipe?\"}]}" |
    sed 's/.*"content":"\([^"]*\)".*/\1/'
  shift 2
done
