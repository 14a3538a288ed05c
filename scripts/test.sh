#!/usr/bin/env bash
# Run go test on packages, with further arguments of go test: scripts/test.sh './...' -count=1 -race
#
# A test that fails runs once more when all others have ended, because many of them time real servers, which a machine that is
# busy elsewhere keeps waiting. What needed its second run is listed at the end: it is a defect of the test to be mended, not a
# reason to doubt the change. Nothing else is excused: a data race, a panic, a test that runs too long, more than five failures.
set -euo pipefail
packages=$1
shift
# https://pkg.go.dev/gotest.tools/gotestsum
gotestsum() { go run gotest.tools/gotestsum@v1.13.0 "$@"; }

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
status=0
gotestsum --format standard-quiet --hide-summary=skipped --jsonfile "$dir/events.json" \
	--rerun-fails=1 --rerun-fails-max-failures=5 --rerun-fails-report "$dir/again" --packages "$packages" -- "$@" || status=$?
if grep -q 'DATA RACE' "$dir/events.json"; then
	echo 'FAIL: the race detector found a race (DATA RACE above). A second run does not excuse that.' >&2
	exit 1
fi
if [ "$status" -eq 0 ] && [ -s "$dir/again" ]; then
	printf 'NEEDED A SECOND RUN, which passed:\n'
	cat "$dir/again"
fi
exit "$status"
