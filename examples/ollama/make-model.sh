#!/bin/sh
# Makes the tiny model in FOLDER and gives it to the Ollama at OLLAMA_HOST, as "tiny".
set -eu
folder=$1
mkdir -p "$folder"
go run ./mkgguf -o "$folder/tiny.gguf"
cat > "$folder/Modelfile" <<MODELFILE
FROM ./tiny.gguf
TEMPLATE """{{ .Prompt }}"""
MODELFILE
HOME=$folder exec ollama create tiny -f "$folder/Modelfile"
