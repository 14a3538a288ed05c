#!/bin/sh
# Builds what a release consists of into dist/, from the commit and nothing else: the same commit gives the same bytes.
# Argument: the version, v1.2.3 or v1.2.3-rc.1. `make release` runs it. It publishes nothing and sets no tag:
# docs/releasing.md.
#
# PARTS (archives sbom npm python image) and PLATFORMS (linux/amd64 ...) build less, for a trial.
set -eu
cd "$(dirname "$0")/.."

say() { printf '%s\n' "$*"; }
refuse() {
	printf 'make release: %s\n' "$*" >&2
	exit 1
}
version=${1:-}
parts=${PARTS:-archives sbom npm python image}
platforms=${PLATFORMS:-linux/amd64 linux/arm64 darwin/amd64 darwin/arm64}
image=${IMAGE:-ghcr.io/quotasvc/quotasvc}
has() { case " $parts " in *" $1 "*) return 0 ;; esac && return 1; }

# Everything that can be refused is refused before anything is built.
[ -n "$version" ] || refuse 'the version is missing: make release VERSION=v1.2.3'
scripts/release-tags.sh --check "$version"
commit=$(git rev-parse HEAD)
for part in $parts; do
	case $part in archives | sbom | npm | python | image) ;; *)
		refuse "PARTS has no $part: archives sbom npm python image"
		;;
	esac
done
command -v go >/dev/null 2>&1 || refuse 'Go is missing: any Go from 1.21 on'
writable() { mkdir -p "$2" 2>/dev/null && [ -w "$2" ] || refuse "$1, $2, cannot be written: set $3"; }
writable "Go's build cache" "$(go env GOCACHE)" GOCACHE
writable "Go's module cache" "$(go env GOMODCACHE)" GOMODCACHE
if has npm; then
	command -v npm >/dev/null 2>&1 || refuse 'npm is missing (PARTS leaves it out)'
	writable "npm's cache" "$(npm config get cache)" npm_config_cache
fi
if has python; then
	python=
	for found in ${PYTHON:-/usr/bin/python3 python3}; do # Debian's package belongs to Debian's Python
		"$found" -c 'import hatchling' 2>/dev/null && python=$found && break
	done
	[ -n "$python" ] ||
		refuse 'no Python has hatchling: apt-get install python3-hatchling, or pip install (PARTS leaves it out)'
fi

number=${version#v}
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH TZ=UTC LC_ALL=C
dir=$(mktemp -d)
trap 'chmod -R u+w "$dir"; rm -rf "$dir"' EXIT
trap 'exit 130' INT TERM
umask 022
out=$dir/dist # dist/ itself is whole or not at all
mkdir -p "$dir/source" "$out"
git archive "$commit" | tar x -C "$dir/source"

# A program that fails for want of a network says so in many lines, none of which names the proxy.
fetching() {
	"$@" >"$dir/log" 2>&1 </dev/null && return 0
	tail -n 5 "$dir/log" >&2
	refuse "failed: $* (it downloads packages: behind a proxy set HTTPS_PROXY)"
}

# bom FILE ARGUMENTS...: an SBOM without its number and time, which differ in each run.
bom() {
	file=$1 command=$2
	shift 2
	fetching $CYCLONEDX "$command" -json -noserial -notimestamp -licenses -output "$out/$file" "$@"
}

archive() {
	name=quotasvc_${number}_$1_$2
	mkdir -p "$dir/$1-$2"
	make -s -C "$dir/source" build-release GOOS="$1" GOARCH="$2" VERSION="$version" COMMIT="$commit" \
		BIN="$dir/$1-$2/quotasvc"
	git -c tar.umask=0022 archive --format=tar --prefix="$name/" --add-file="$dir/$1-$2/quotasvc" "$commit" \
		LICENSE README.md CHANGELOG.md docker-compose.yml cmd/quotasvc/demo.yaml deploy ':(exclude)*.go' |
		gzip -9n >"$out/$name.tar.gz"
	! has sbom || bom "$name.cdx.json" bin -version "$version" "$dir/$1-$2/quotasvc"
}

if has archives; then
	for platform in $platforms; do archive "${platform%/*}" "${platform#*/}"; done
	# The section of CHANGELOG.md about this version.
	awk -v heading="## $number -" '/^## / { inside = index($0, heading) == 1; next } inside' CHANGELOG.md \
		>"$out/release-notes.md"
fi
if has sbom; then
	for module in client client/quotaecho; do
		name=quotasvc-go-$(say "$module" | tr / -)_$number.cdx.json
		(
			cd "$dir/source/$module"
			export GOWORK=off
			bom "$name" mod -type library
		)
		# The modules of this release have no version in the source: it is in their tags.
		sed -E "s,(golang/github\.com/quotasvc/quotasvc/client(/[a-z]+)?)\?,\1@$version?,
			s,^( *)\"name\": \"github\.com/quotasvc/quotasvc/client(/[a-z]+)?\"\,,&\\
\1\"version\": \"$version\"\,," "$out/$name" >"$dir/bom"
		mv "$dir/bom" "$out/$name"
	done
fi
if has npm; then
	(
		cd "$dir/source/sdk/typescript"
		fetching npm ci --no-audit --no-fund
		fetching npm pack --pack-destination "$out"
		! has sbom || node scripts/sbom.mjs >"$out/quotasvc-npm_$number.cdx.json"
	)
fi
if has python; then
	(
		cd "$dir/source/sdk/python"
		"$python" -m hatchling build -d "$out" >"$dir/log" 2>&1 || {
			tail -n 5 "$dir/log" >&2
			refuse 'hatchling failed'
		}
		! has sbom || "$python" -B scripts/sbom.py "$out"/*.whl >"$out/quotasvc-python_$number.cdx.json"
	)
fi
if has image; then
	if command -v docker >/dev/null 2>&1 && docker info >/dev/null 2>&1; then
		make -s -C "$dir/source" image IMAGE="$image:$number" VERSION="$version" COMMIT="$commit" \
			SOURCE_DATE_EPOCH="$SOURCE_DATE_EPOCH"
		platform=$(docker image inspect -f '{{.Os}}_{{.Architecture}}' "$image:$number")
		docker save "$image:$number" | gzip -9n >"$out/quotasvc_${number}_image_$platform.tar.gz"
	else
		say 'image: LEFT OUT: no Docker engine answers here'
	fi
fi
[ -n "$(ls "$out")" ] || refuse 'nothing is built'
(
	cd "$out"
	sha256sum -- * >"$dir/checksums" 2>/dev/null || shasum -a 256 -- * >"$dir/checksums"
	mv "$dir/checksums" checksums.txt
)
chmod 644 "$out"/*
rm -rf dist
mv "$out" dist
say "dist/ is $version of commit $commit:" "$(cd dist && ls | tr '\n' ' ')"
say 'Tags:'
scripts/release-tags.sh --print "$version"
