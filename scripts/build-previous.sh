#!/bin/sh
# Builds the newest release before this commit and prints the path of the program. It is built once: the user's cache
# keeps it.
#   --commit     prints the release's commit instead
#   --released   the commit itself counts, too, if it is a release
# The release is the newest tag of the service among the ancestors. A clone without tags has the file
# lab/e2e/testdata/upgrade/previous, which names its commit. Fails if this clone has neither.
set -eu
cd "$(dirname "$0")/.."

only='' from='HEAD^'
for argument in "$@"; do
	case $argument in
	--commit) only=1 ;;
	--released) from=HEAD ;;
	esac
done
version=$(git describe --tags --abbrev=0 --match 'v[0-9]*' --exclude '*-*' "$from" 2>/dev/null) ||
	version=$(cat lab/e2e/testdata/upgrade/previous)
if ! commit=$(git rev-parse --verify --quiet "$version^{commit}"); then
	echo "The release before this commit, $version, is not in this clone: run git fetch --unshallow --tags." >&2
	exit 1
fi
if [ -n "$only" ]; then
	printf '%s\n' "$commit"
	exit
fi
cache=${XDG_CACHE_HOME:-${HOME:-/nonexistent}/.cache}/quotasvc
mkdir -p "$cache" 2>/dev/null && [ -w "$cache" ] || cache=$PWD/bin # no home folder, or one that is read-only
program=$cache/previous/$commit
if [ ! -x "$program" ]; then
	source=$(mktemp -d)
	trap 'rm -rf "$source"' EXIT
	git archive "$commit" | tar x -C "$source"
	mkdir -p "${program%/*}"
	(cd "$source" && CGO_ENABLED=0 go build -trimpath -buildvcs=false -o "$program.new" ./cmd/quotasvc)
	mv "$program.new" "$program"
fi
printf '%s\n' "$program"
