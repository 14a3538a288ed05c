#!/bin/sh
# Fails if a generated file is not what its generator makes today. The files are
# compared with themselves before and after, so that uncommitted work does not
# matter. A difference stays in the work tree, for a commit.
set -eu
cd "$(dirname "$0")/.."

sums() {
	find . -name '*.gen.go' -not -path './.git/*' -exec cksum {} + | sort -k 3
}

before=$(sums)
go generate ./...
after=$(sums)
if [ "$before" != "$after" ]; then
	printf '%s\n' "These generated files were out of date; commit what 'make generate' has made of them:" >&2
	printf '%s\n%s\n' "$before" "$after" | sort | uniq -u | awk '{ print "  " $3 }' | sort -u >&2
	exit 1
fi
