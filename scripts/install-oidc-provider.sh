#!/bin/sh
# Builds bin/oidc-provider if it is missing: the example server of github.com/zitadel/oidc, a certified OpenID provider, at a pinned version. Only
# tests of the console's sign-in use it. If it cannot be built, this prints a message and succeeds, so that the other tests run.
set -eu
cd "$(dirname "$0")/.."
version=v3.52.0
if [ -x bin/oidc-provider ]; then exit 0; fi
case ",${QUOTASVC_TEST_WITHOUT:-}," in *,oidc-provider,*) exit 0 ;; esac
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
mkdir -p bin
if GOFLAGS= GOBIN=$dir go install "github.com/zitadel/oidc/v3/example/server@$version" >"$dir/log" 2>&1; then
	mv "$dir/server" bin/oidc-provider
else
	tail -n 3 "$dir/log" >&2
	echo 'oidc-provider cannot be built, so the tests of signing in with an identity provider will fail. Set QUOTASVC_TEST_WITHOUT=oidc-provider to skip them.' >&2
fi
