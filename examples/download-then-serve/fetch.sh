#!/bin/sh
# Downloads URL to FILE: the name appears only when the file is whole, and what
# came before a broken line is kept.
set -eu
url=$1 file=$2
mkdir -p "$(dirname "$file")"
[ ! -e "$file" ] || { echo "$file is there already"; exit 0; }
curl --fail --show-error --silent --retry 5 --retry-connrefused --continue-at - --output "$file.part" "$url"
mv "$file.part" "$file"
echo "downloaded $file, $(wc -c < "$file") bytes"
