#!/bin/sh
# Gets promtool, libfaketime and PgBouncer if they are missing. Only tests use them:
# promtool checks and tests the alert rules, libfaketime moves PostgreSQL's clock, and
# PgBouncer stands between the service and PostgreSQL. On Debian and Ubuntu this script
# extracts the files from their packages into bin/, without root and without an
# installation. If nothing is missing it prints nothing and uses no network.
#
# If it cannot get one, it prints a message and succeeds, so that the other tests run.
# The tests that need it then fail, or are skipped if QUOTASVC_TEST_WITHOUT names it:
# promtool, libfaketime or pgbouncer; several with commas.
set -eu
cd "$(dirname "$0")/.."

say() { printf '%s\n' "$*" >&2; }

have_promtool() {
	command -v promtool >/dev/null 2>&1 || [ -x bin/promtool ]
}

# The same places as in internal/lab/testenv (clock.go).
have_libfaketime() {
	for file in /usr/lib/*/faketime/libfaketime.so.1 /usr/lib*/faketime/libfaketime.so.1 \
		/usr/local/lib/faketime/libfaketime.so.1 bin/libfaketime.so.1; do
		[ -e "$file" ] && return 0
	done
	return 1
}

# The same places as in lab/e2e (pgbouncer_test.go).
have_pgbouncer() {
	command -v pgbouncer >/dev/null 2>&1 || [ -x /usr/sbin/pgbouncer ] || [ -x bin/pgbouncer/pgbouncer ]
}

without() {
	case ",${QUOTASVC_TEST_WITHOUT:-}," in *,"$1",*) return 0 ;; esac
	return 1
}

want=
have_promtool || without promtool || want=prometheus
have_libfaketime || without libfaketime || [ "$(uname)" != Linux ] || want="$want libfaketime"
have_pgbouncer || without pgbouncer || want="$want pgbouncer"
want=${want# }
[ -n "$want" ] || exit 0

# Everybody may write to the directory, because apt downloads as another user.
dir=$(mktemp -d)
chmod 777 "$dir"
trap 'rm -rf "$dir"' EXIT
trap 'exit 130' INT TERM

# A package whose programs need a library that a machine may lack.
packages() {
	case $1 in pgbouncer) echo pgbouncer libevent-2.1-7 libc-ares2 ;; *) echo "$1" ;; esac
}

from_apt() {
	all=
	for package in $want; do all="$all $(packages "$package")"; done
	(cd "$dir" && apt-get -q -o Acquire::Retries=2 -o Acquire::http::Timeout=30 download $all) >"$dir/log" 2>&1 </dev/null
}

with_apt() {
	# Old package lists name files that the mirrors no longer have. Only root may update the lists.
	from_apt || { [ "$(id -u)" = 0 ] && apt-get -q update >"$dir/log" 2>&1 </dev/null && from_apt; } || return 1
	mkdir -p bin
	for package in $want; do "extract_$package" || return 1; done
}

extract_prometheus() {
	dpkg-deb --fsys-tarfile "$dir"/prometheus_*.deb | tar -xO ./usr/bin/promtool >"$dir/promtool"
	chmod 755 "$dir/promtool"
	"$dir/promtool" --version >/dev/null 2>&1 || return 1
	mv "$dir/promtool" bin/promtool
}

extract_libfaketime() {
	dpkg-deb --fsys-tarfile "$dir"/libfaketime_*.deb | tar -xO --wildcards './usr/lib/*/faketime/libfaketime.so.1' >"$dir/libfaketime.so.1"
	[ -s "$dir/libfaketime.so.1" ] || return 1
	mv "$dir/libfaketime.so.1" bin/libfaketime.so.1
}

extract_pgbouncer() {
	mkdir -p "$dir/pgbouncer"
	for file in pgbouncer libevent-2.1-7 libc-ares2; do
		dpkg-deb --fsys-tarfile "$dir/$file"_*.deb | tar -x -C "$dir/pgbouncer" || return 1
	done
	mkdir -p bin/pgbouncer
	cp -L "$dir"/pgbouncer/usr/lib/*/libevent-2.1.so.7 "$dir"/pgbouncer/usr/lib/*/libcares.so.2 bin/pgbouncer/
	LD_LIBRARY_PATH=bin/pgbouncer "$dir/pgbouncer/usr/sbin/pgbouncer" --version >/dev/null 2>&1 || return 1
	mv "$dir/pgbouncer/usr/sbin/pgbouncer" bin/pgbouncer/pgbouncer
}

if command -v apt-get >/dev/null 2>&1 && command -v dpkg-deb >/dev/null 2>&1; then
	say "getting programs that only tests use (once; $want; 20 MB) ..."
	with_apt || { tail -n 3 "$dir/log" >&2; }
elif [ "${want%% *}" = prometheus ] && command -v brew >/dev/null 2>&1; then
	say 'installing prometheus with brew for the tests of the alert rules (once) ...'
	brew install prometheus >"$dir/log" 2>&1 </dev/null || tail -n 3 "$dir/log" >&2
fi
have_libfaketime || without libfaketime || [ "$(uname)" != Linux ] ||
	say 'libfaketime is missing, so the tests that move the clock of PostgreSQL will fail. Set QUOTASVC_TEST_WITHOUT=libfaketime to skip these tests.'
have_promtool || without promtool ||
	say 'promtool is missing, so the tests of the alert rules will fail. It is part of Prometheus. Set QUOTASVC_TEST_WITHOUT=promtool to skip these tests.'
have_pgbouncer || without pgbouncer ||
	say 'PgBouncer is missing, so the tests of the service behind a pooler will fail. Install the package pgbouncer, or set QUOTASVC_TEST_WITHOUT=pgbouncer to skip these tests.'
