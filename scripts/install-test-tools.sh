#!/bin/sh
# Gets promtool if it is missing. Only tests use it: it checks and tests the alert
# rules. Prometheus is not needed, so on Debian and Ubuntu this script extracts the
# program from its package into bin/, without root and without an installation.
# If nothing is missing it prints nothing and uses no network.
#
# If it cannot get promtool, it prints a message and succeeds, so that the other tests
# run. The tests of the alert rules then fail, or are skipped if
# QUOTASVC_TEST_WITHOUT=promtool is set.
set -eu
cd "$(dirname "$0")/.."

say() { printf '%s\n' "$*" >&2; }

have_promtool() {
	command -v promtool >/dev/null 2>&1 || [ -x bin/promtool ]
}

have_promtool && exit 0
[ "${QUOTASVC_TEST_WITHOUT:-}" = promtool ] && exit 0

# Everybody may write to the directory, because apt downloads as another user.
dir=$(mktemp -d)
chmod 777 "$dir"
trap 'rm -rf "$dir"' EXIT
trap 'exit 130' INT TERM

from_apt() {
	(cd "$dir" && apt-get -q -o Acquire::Retries=2 -o Acquire::http::Timeout=30 download prometheus) >"$dir/log" 2>&1 </dev/null
}

with_apt() {
	# Old package lists name files that the mirrors no longer have. Only root may update the lists.
	from_apt || { [ "$(id -u)" = 0 ] && apt-get -q update >"$dir/log" 2>&1 </dev/null && from_apt; } || return 1
	mkdir -p bin
	dpkg-deb --fsys-tarfile "$dir"/prometheus_*.deb | tar -xO ./usr/bin/promtool >"$dir/promtool"
	chmod 755 "$dir/promtool"
	"$dir/promtool" --version >/dev/null 2>&1 || return 1
	mv "$dir/promtool" bin/promtool
}

if command -v apt-get >/dev/null 2>&1 && command -v dpkg-deb >/dev/null 2>&1; then
	say 'getting promtool for the tests of the alert rules (once; 20 MB) ...'
	with_apt || { tail -n 3 "$dir/log" >&2; }
elif command -v brew >/dev/null 2>&1; then
	say 'installing prometheus with brew for the tests of the alert rules (once) ...'
	brew install prometheus >"$dir/log" 2>&1 </dev/null || tail -n 3 "$dir/log" >&2
fi
have_promtool || [ "${QUOTASVC_TEST_WITHOUT:-}" = promtool ] ||
	say 'promtool is missing, so the tests of the alert rules will fail. It is part of Prometheus. Set QUOTASVC_TEST_WITHOUT=promtool to skip these tests.'
