#!/bin/sh
# Builds the version before this one and prints the path of the program. It is built once: the user's cache keeps it. Fails if the commit is not in this clone.
set -eu
cd "$(dirname "$0")/.."

version=$(cat lab/e2e/testdata/upgrade/previous)
if ! commit=$(git rev-parse --verify --quiet "$version^{commit}"); then
	printf '%s\n' "The version before this one, $version, is not in this clone: run git fetch --unshallow --tags." >&2
	exit 1
fi
program=${XDG_CACHE_HOME:-$HOME/.cache}/quotasvc/previous/$commit
if [ ! -x "$program" ]; then
	source=$(mktemp -d)
	trap 'rm -rf "$source"' EXIT
	git archive "$commit" | tar x -C "$source"
	mkdir -p "${program%/*}"
	(cd "$source" && CGO_ENABLED=0 go build -trimpath -buildvcs=false -o "$program.new" ./cmd/quotasvc)
	mv "$program.new" "$program"
fi
printf '%s\n' "$program"
