#!/bin/sh
# Installs PostgreSQL, Redis and curl with the system's package manager if they are
# missing. `make run` prints curl commands, and a test runs them. Arguments are further
# programs whose packages have the same names: `install-servers.sh nginx haproxy`.
# If nothing is missing it prints nothing and uses no network.
# It changes no existing service and does not start the services of new packages:
# quotasvc runs private servers from the binaries.
set -eu

say() { printf '%s\n' "$*" >&2; }

# The same directories as in internal/lab/localstack (binaries.go). A test compares them.
postgres_dirs='/usr/lib/postgresql/*/bin /usr/pgsql-*/bin
	/opt/homebrew/opt/postgresql@*/bin /usr/local/opt/postgresql@*/bin
	/opt/homebrew/opt/postgresql/bin /usr/local/opt/postgresql/bin
	/usr/libexec/postgresql* /usr/local/pgsql/bin /usr/bin'
redis_dirs='/usr/bin /usr/local/bin /opt/homebrew/bin /usr/sbin'

have_postgres() {
	command -v postgres >/dev/null 2>&1 && command -v initdb >/dev/null 2>&1 && return 0
	for dir in $postgres_dirs; do # unquoted, so that wildcards are expanded
		[ -x "$dir/postgres" ] && [ -x "$dir/initdb" ] && return 0
	done
	return 1
}

have_redis() {
	for name in redis-server valkey-server; do
		command -v "$name" >/dev/null 2>&1 && return 0
		for dir in $redis_dirs; do
			[ -x "$dir/$name" ] && return 0
		done
	done
	return 1
}

have_curl() {
	command -v curl >/dev/null 2>&1
}

further=$*
program_dirs='/usr/sbin /usr/local/sbin /usr/local/bin /opt/homebrew/bin'

have_program() {
	command -v "$1" >/dev/null 2>&1 && return 0
	for dir in $program_dirs; do
		[ -x "$dir/$1" ] && return 0
	done
	return 1
}

look() {
	missing=
	have_postgres || missing=PostgreSQL
	have_redis || missing="${missing:+$missing, }Redis"
	have_curl || missing="${missing:+$missing, }curl"
	for program in $further; do
		have_program "$program" || missing="${missing:+$missing, }$program"
	done
}

look
[ -n "$missing" ] || exit 0

give_up() {
	say "quotasvc needs $missing, and this script $1."
	say 'Install them manually:'
	say "  Debian, Ubuntu   apt-get install postgresql redis-server curl $further"
	say "  Fedora, RHEL     dnf install postgresql-server redis curl $further     (or valkey for redis)"
	say "  macOS            brew install postgresql@17 redis $further"
	say 'Or run everything in containers, without an installation:'
	say '  docker compose up --build'
	exit 1
}

# become_root chooses how as_root works: directly, with sudo without a password, or
# with sudo after a password prompt if there is a terminal.
become_root() {
	if [ "$(id -u)" = 0 ]; then
		sudo=
	elif command -v sudo >/dev/null 2>&1 && sudo -n true 2>/dev/null; then
		sudo='sudo -n'
	elif command -v sudo >/dev/null 2>&1 && (: </dev/tty) 2>/dev/null; then
		say "$missing must be installed with the package manager, as root."
		sudo -v || give_up 'may not install packages'
		sudo=sudo
	else
		give_up 'may not install packages: you are not root, and sudo does not work'
	fi
}

as_root() {
	$sudo "$@" # unquoted: zero, one or two words
}

log=$(mktemp)
trap 'rm -f "$log"' EXIT
trap 'exit 130' INT TERM

# quietly shows a package manager's output only if it fails.
quietly() {
	"$@" >"$log" 2>&1 </dev/null || {
		cat "$log" >&2
		return 1
	}
}

# Debian's packages run this policy before they start a service.
policy=/usr/sbin/policy-rc.d

# hold_services prevents new packages from starting services while this script runs.
# The policy has no effect after this process has ended, even if a crash leaves the
# file. An existing policy belongs to the administrator and is not replaced.
hold_services() {
	[ -e "$policy" ] && return 0
	trap 'rm -f "$log"; as_root rm -f "$policy"' EXIT
	as_root sh -c "cat >$policy && chmod 755 $policy" <<-END
		#!/bin/sh
		# Written by quotasvc's scripts/install-servers.sh; it has no effect after the script has ended.
		kill -0 $$ 2>/dev/null || [ -d /proc/$$ ] || exit 0
		case "\$1" in postgresql*|redis*|valkey*|nginx*|haproxy*) exit 101 ;; esac
		exit 0
	END
}

apt() {
	quietly as_root env DEBIAN_FRONTEND=noninteractive apt-get -q \
		-o DPkg::Lock::Timeout=120 -o Acquire::Retries=2 -o Acquire::http::Timeout=30 "$@"
}

# apt_knows succeeds if the package lists contain an installable version.
apt_knows() {
	apt-cache policy "$1" 2>/dev/null | grep -q 'Candidate: [^(]'
}

with_apt() {
	become_root
	set --
	have_postgres || set -- "$@" postgresql
	have_redis || set -- "$@" redis-server
	have_curl || set -- "$@" curl
	strangers=
	for program in $further; do
		have_program "$program" || { set -- "$@" "$program"; strangers="$strangers $program"; }
	done
	for package in "$@"; do
		if ! apt_knows "$package"; then
			apt update || return 1
			break
		fi
	done
	hold_services || return 1
	if ! apt install -y --no-install-recommends "$@"; then
		say 'trying again with new package lists: the old ones name files that the mirrors no longer have'
		apt update && apt install -y --no-install-recommends "$@" || return 1
	fi
	# A gateway for tests must not take port 80 at the next boot.
	for program in $strangers; do
		as_root systemctl disable "$program.service" >/dev/null 2>&1 || :
	done
}

with_dnf() {
	become_root
	if ! have_postgres; then
		quietly as_root dnf install -y postgresql-server || return 1
	fi
	if ! have_curl; then
		quietly as_root dnf install -y curl || return 1
	fi
	for program in $further; do
		have_program "$program" || quietly as_root dnf install -y "$program" || return 1
	done
	# Fedora has replaced Redis by Valkey.
	have_redis || quietly as_root dnf install -y redis || quietly as_root dnf install -y valkey
}

# Homebrew refuses to run as root. macOS has curl.
with_brew() {
	if ! have_postgres; then
		quietly brew install postgresql@17 || return 1
	fi
	for program in $further; do
		have_program "$program" || quietly brew install "$program" || return 1
	done
	have_redis || quietly brew install redis
}

if command -v apt-get >/dev/null 2>&1; then
	manager=apt
elif command -v dnf >/dev/null 2>&1; then
	manager=dnf
elif command -v brew >/dev/null 2>&1; then
	manager=brew
else
	give_up 'supports only apt, dnf and brew'
fi
say "installing $missing with $manager (once; takes about a minute) ..."
"with_$manager" || give_up "could not install them with $manager (see its message above)"
look
[ -z "$missing" ] || give_up "ran $manager without an error and still does not find them"
say "done; the services of the packages were not started"
