#!/bin/sh
# Builds the program as the image does, twice: from two directories, each with an empty build cache. Fails if the bytes differ.
# Arguments: version and commit.
set -eu
cd "$(dirname "$0")/.."

dir=$(mktemp -d)
trap 'chmod -R u+w "$dir"; rm -rf "$dir"' EXIT
for n in 1 2; do
	mkdir -p "$dir/source-$n"
	git ls-files -z | tar c --null -T - | tar x -C "$dir/source-$n"
	GOCACHE=$dir/cache-$n make -s -C "$dir/source-$n" build-release VERSION="$1" COMMIT="$2" BIN="$dir/quotasvc-$n"
done
cksum "$dir/quotasvc-1" "$dir/quotasvc-2" | awk '{ print $1, $2 }' | uniq | {
	read -r first
	if read -r second; then
		printf 'The two builds differ: %s, %s (CRC, bytes)\n' "$first" "$second" >&2
		exit 1
	fi
}
(sha256sum "$dir/quotasvc-1" 2>/dev/null || shasum -a 256 "$dir/quotasvc-1") | awk '{ print $1, "of both builds" }'
