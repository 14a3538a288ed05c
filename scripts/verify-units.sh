#!/bin/sh
# Lets systemd read its units, those of deploy/systemd or of the directory that is given: names of settings, values,
# calendars. A program that is not installed here is not an error of the unit.
set -eu
cd "${1:-$(dirname "$0")/../deploy/systemd}"

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
mkdir -p "$dir/etc/systemd/system" "$dir/usr/local/bin"
for unit in *.service *.timer; do
	sed 's,/usr/local/bin/quotasvc,/bin/true,' "$unit" >"$dir/etc/systemd/system/$unit"
done
problems=$(systemd-analyze verify "$dir"/etc/systemd/system/quotasvc* 2>&1 | grep -F quotasvc | grep -v 'Failed to create\|is not executable' || true)
if [ -n "$problems" ]; then
	printf '%s\n' "$problems" >&2
	exit 1
fi
echo 'systemd units: valid'
