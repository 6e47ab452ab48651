#!/bin/sh
# Asks each MODEL URL pair for a completion.
set -eu
while [ $# -gt 1 ]; do
  printf '%s: ' "$1"
  "$HOB" pilot ask --model "$1" --url "$2" What is a recipe?
  shift 2
done
