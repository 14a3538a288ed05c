#!/bin/sh
# The tags of a release: one for the service, and one for each Go module of go.work that other programs import. The
# laboratory is not published.
#   release-tags.sh --check v1.2.3     fails unless this commit may have them
#   release-tags.sh --print v1.2.3     the commands that set and push them
#   release-tags.sh --set v1.2.3       sets them for this commit, and prints the command that pushes them
set -eu
cd "$(dirname "$0")/.."

refuse() {
	printf '%s\n' "$*" >&2
	exit 1
}
version=${2:-}
[ -n "$version" ] || refuse 'the version is missing: make release-tags VERSION=v1.2.3'
names=$(awk -v version="$version" '$1 == "." { print version }
	$1 ~ /^\.\// && $1 != "./lab" { print substr($1, 3) "/" version }' go.work)

# tagged prints the commit of a tag, and fails if there is no such tag.
tagged() { git rev-parse --verify --quiet "refs/tags/$1^{commit}"; }

check() {
	scripts/release-version.sh --check "$version"
	commit=$(git rev-parse --verify --quiet 'HEAD^{commit}' 2>/dev/null) ||
		refuse 'git finds no commit here: a release needs a clone, and git'
	changed=$(git status --porcelain --untracked-files=normal)
	[ -z "$changed" ] ||
		refuse "commit these files, or remove them: $(echo "$changed" | cut -c4- | head -n 5 | tr '\n' ' ')"
	for tag in $names; do
		other=$(tagged "$tag") || continue
		[ "$other" = "$commit" ] || refuse "the tag $tag exists already, for the commit $other"
	done
}

case $1 in
--check) check ;;
--print)
	for tag in $names; do echo "  git tag -a -m 'quotasvc $tag' $tag"; done
	echo "  git push origin" $names
	;;
--set)
	check
	for tag in $names; do tagged "$tag" >/dev/null || git tag -a -m "quotasvc $tag" "$tag"; done
	echo "git push origin" $names
	;;
esac
