#!/bin/sh
# Fails if a generated file differs from the generator's current output. It compares the
# files before and after a run, so uncommitted work does not matter. The new files stay
# in the work tree, to be committed.
set -eu
cd "$(dirname "$0")/.."

sums() {
	find . \( -name '*.gen.go' -o -name '*_templ.go' -o -path ./docs/sdks.md \) -not -path './.git/*' -exec cksum {} + | sort -k 3
}

before=$(sums)
go generate ./...
after=$(sums)
if [ "$before" != "$after" ]; then
	printf '%s\n' "These generated files were out of date. Commit the new ones:" >&2
	printf '%s\n%s\n' "$before" "$after" | sort | uniq -u | awk '{ print "  " $3 }' | sort -u >&2
	exit 1
fi
