#!/bin/sh
# The version of the release that is being prepared stands in some files: those of the packages, and the page with the
# commands that install it.
#   release-version.sh v1.2.3             writes it into them, and gives the section `Unreleased` of CHANGELOG.md its
#                                         number and day
#   release-version.sh --check v1.2.3     fails unless all of them say it
set -eu
cd "$(dirname "$0")/.."

refuse() {
	printf '%s\n' "$*" >&2
	exit 1
}
check=
if [ "${1:-}" = --check ]; then
	check=1
	shift
fi
version=${1:-}
[ -n "$version" ] || refuse 'the version is missing: make release-version VERSION=v1.2.3'
printf '%s\n' "$version" | grep -Eqx 'v(0|[1-9][0-9]*)(\.(0|[1-9][0-9]*)){2}(-rc\.[1-9][0-9]*)?' ||
	refuse "\"$version\" is no version: v1.2.3, or v1.2.3-rc.1 for a release candidate"
major=${version%%.*}
case $major in
v0 | v1) ;;
*)
	grep -q "^module .*/$major\$" client/go.mod ||
		refuse "$version needs modules whose paths end with /$major: go.mod, client/go.mod, client/quotaecho/go.mod"
	;;
esac
number=${version#v}
pypi=$(printf '%s\n' "$number" | sed 's/-rc\./rc/') # how Python writes a release candidate

# Each line: a file, and a sed expression that writes the version into it.
client='github\.com/quotasvc/quotasvc/client'
n='[0-9][0-9a-z.-]*'
places() {
	cat <<-END
		client/version.go s/^(const version = ")[^"]*/\1$number/
		client/quotaecho/go.mod s,($client v)$n,\1$number,
		go.mod s,($client v)$n,\1$number,
		lab/go.mod s,($client v)$n,\1$number,
		sdk/python/src/quotasvc/_version.py s/^(__version__ = ")[^"]*/\1$pypi/
		sdk/typescript/package.json s/^(  "version": ")[^"]*/\1$number/
		sdk/typescript/package-lock.json 1,/"packages": \{/s/^(  "version": ")[^"]*/\1$number/
		sdk/typescript/package-lock.json /^    "": \{/,/\}/s/^(      "version": ")[^"]*/\1$number/
		docs/install.md s,quotasvc_${n}_(linux|darwin),quotasvc_${number}_\1,g
		docs/install.md s,(download/v)$n,\1$number,g
		docs/install.md s,(ghcr\.io/quotasvc/quotasvc:)$n,\1$number,g
		docs/install.md s,(newTag: )$n,\1$number,g
		docs/install.md s,(quotasvc/quotasvc/client(/quotaecho)? v)$n,\1$number,g
		docs/install.md s,(quotasvc v)$n,\1$number,g
		docs/install.md s,(installed quotasvc-)$n,\1$pypi,g
	END
}
# A version that is refused is written into no file. The section of this version has the day of the release in its
# heading: "## 1.2.3 - 2026-12-01".
unreleased='## ([0-9][0-9a-z.-]* - )?Unreleased'
dated() { grep -Eq "^## $number - [0-9]{4}(-[0-9]{2}){2}\$" CHANGELOG.md; }
[ -n "$check" ] || dated || grep -Eqx "$unreleased" CHANGELOG.md ||
	refuse 'CHANGELOG.md has no section "## Unreleased" that can become that of this version'
new=$(mktemp)
trap 'rm -f "$new"' EXIT
prepare="make release-version VERSION=$version, and commit it"
places | while read -r file expression; do
	sed -E "$expression" "$file" >"$new"
	cmp -s "$file" "$new" || {
		[ -z "$check" ] || refuse "$file names another version than $version: $prepare"
		cat "$new" >"$file"
	}
done

if ! dated; then
	[ -z "$check" ] || refuse "CHANGELOG.md has no section \"## $number - DAY\": $prepare"
	sed -E "s/^$unreleased\$/## $number - $(date -u +%Y-%m-%d)/" CHANGELOG.md >"$new"
	cat "$new" >CHANGELOG.md
fi
