#!/bin/sh
# Runs the tests of the Python SDK with a real service. On Debian and Ubuntu it installs what they need from the system's packages, if
# something is missing. Elsewhere, or with another PYTHON, these must be there: httpx, fastapi, django, uvicorn, pytest, pytest-asyncio, jsonschema,
# PyYAML, hatchling, mypy. Arguments go to pytest; `--install` alone installs and runs nothing.
set -eu
cd "$(dirname "$0")/.."

say() { printf '%s\n' "$*" >&2; }

if [ -z "${PYTHON:-}" ]; then
	# Debian's packages belong to Debian's Python, even if another one comes first in PATH.
	PYTHON=python3
	command -v apt-get >/dev/null 2>&1 && [ -x /usr/bin/python3 ] && PYTHON=/usr/bin/python3
fi

complete() {
	"$PYTHON" -c 'import ensurepip, django, fastapi, hatchling, httpx, jsonschema, pytest, pytest_asyncio, uvicorn, yaml' 2>/dev/null &&
		command -v mypy >/dev/null 2>&1
}

as_root() {
	if [ "$(id -u)" = 0 ]; then
		"$@"
	else
		sudo "$@"
	fi
}

if ! complete; then
	if ! command -v apt-get >/dev/null 2>&1; then
		say "$PYTHON lacks a package that the tests need; the head of sdk/python/scripts/test.sh lists them"
		exit 1
	fi
	say 'installing Python packages for the tests with apt (once; takes about a minute) ...'
	packages='python3-venv python3-httpx python3-fastapi python3-django python3-uvicorn python3-pytest python3-pytest-asyncio
		python3-jsonschema python3-yaml python3-hatchling mypy'
	log=$(mktemp)
	trap 'rm -f "$log"' EXIT
	install() {
		# shellcheck disable=SC2086 # several words
		as_root env DEBIAN_FRONTEND=noninteractive apt-get -q -o DPkg::Lock::Timeout=120 install -y --no-install-recommends $packages >"$log" 2>&1
	}
	install || { as_root apt-get -q update >"$log" 2>&1 && install; } || {
		cat "$log" >&2
		exit 1
	}
	complete || {
		say "$PYTHON still lacks a package that the tests need"
		exit 1
	}
fi

[ "${1:-}" = --install ] && exit 0
exec "$PYTHON" -B -m pytest -p no:cacheprovider "$@"
