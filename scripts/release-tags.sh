#!/bin/sh
# The tags of a release: one for the service, and one for each Go module of go.work that other programs import. The
# laboratory is not published.
#   release-tags.sh --names v1.2.3     their names
#   release-tags.sh --print v1.2.3     the commands that set and push them
#   release-tags.sh --set v1.2.3       sets them for this commit, and prints the command that pushes them
set -eu
cd "$(dirname "$0")/.."

version=${2:-}
[ -n "$version" ] || {
	echo 'make release-tags: the version is missing: make release-tags VERSION=v1.2.3' >&2
	exit 1
}
names=$(awk -v version="$version" '$1 == "." { print version }
	$1 ~ /^\.\// && $1 != "./lab" { print substr($1, 3) "/" version }' go.work)
case $1 in
--names) printf '%s\n' "$names" ;;
--print)
	for tag in $names; do echo "  git tag -a -m 'quotasvc $tag' $tag"; done
	echo "  git push origin" $names
	;;
--set)
	scripts/release-version.sh --check "$version"
	for tag in $names; do git tag -a -m "quotasvc $tag" "$tag"; done
	echo "git push origin" $names
	;;
esac
