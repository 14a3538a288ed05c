#!/bin/sh
# Runs the tests of this SDK: installs the packages of both package-lock.json, then scripts/test.mjs. The arguments are those of test.mjs;
# `--install` alone installs and runs nothing.
# The SDK runs on Node 18; its tests need 20.9, because Next does. If the system's Node is older, the tests run on one from npm.
set -eu
cd "$(dirname "$0")/.."

recent() {
	node -e 'const [a, b] = process.versions.node.split(".").map(Number); process.exit(a > 20 || (a === 20 && b >= 9) ? 0 : 1)' 2>/dev/null
}

if ! recent; then
	case $(uname -s)-$(uname -m) in
	Linux-x86_64) platform=linux-x64 ;;
	Linux-aarch64) platform=linux-arm64 ;;
	*)
		echo "the tests need Node 20.9 or newer, and this is $(node -v)" >&2
		exit 1
		;;
	esac
	[ -x ".node/node_modules/node-$platform/bin/node" ] ||
		npm install --silent --no-save --no-audit --no-fund --prefix .node "node-$platform@20"
	PATH=$PWD/.node/node_modules/node-$platform/bin:$PATH
	export PATH
	recent || {
		echo "the Node from npm is too old: $(node -v)" >&2
		exit 1
	}
fi

# The package, and its tests with their frameworks. npm ci removes node_modules first, so it runs only after a change of the lock file.
for package in . test; do
	(
		cd "$package"
		cmp -s package-lock.json node_modules/.installed-lock.json && exit 0
		npm ci --silent --no-audit --no-fund
		cp package-lock.json node_modules/.installed-lock.json
	)
done
[ "${1:-}" = --install ] && exit 0
exec node scripts/test.mjs "$@"
