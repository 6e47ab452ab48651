#!/usr/bin/env bash
# Builds Ollama from source into FOLDER, unless it is there, and prints the
# folder. It takes two minutes the first time. The version is one that builds
# with go install alone and needs no other tool.
set -euo pipefail
version=v0.6.5
folder=${1:-$(cd "$(dirname "$0")/../.." && pwd)/.tools/ollama-$version}
if ! [ -x "$folder/ollama" ]; then
  mkdir -p "$folder"
  new=$(mktemp -d "$folder/new.XXXXXX")
  trap 'rm -rf "$new"' EXIT
  echo "building Ollama $version into $folder (about two minutes)" >&2
  CGO_ENABLED=1 GOBIN=$new go install "github.com/ollama/ollama@$version"
  mv "$new/ollama" "$folder/ollama"
fi
echo "$folder"
