#!/bin/sh
# Writes into files the digests that the registries have now for the tags of images: postgres:17 and
# postgres:17@sha256:... become postgres:17@sha256:<digest>. A digest always means the same bytes.
# Without arguments it changes all files of the repository from which images are pulled. If a registry does not answer,
# the script prints one line, fails, and changes nothing.
set -eu
cd "$(dirname "$0")/.."
[ $# -gt 0 ] || set -- Dockerfile docker-compose.yml deploy/citus/compose.yaml

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
trap 'exit 130' INT TERM

give_up() {
	printf 'no digest of %s: %s; nothing was changed\n' "$1" "$2" >&2
	exit 1
}

# images prints each image with a tag that the files name, without a digest. Our own images are built, not pulled.
images() {
	sed -nE -e 's/^ARG [A-Z]+_IMAGE=([^@ ]+).*/\1/p' -e 's/^ +image: ([^@ {]+).*/\1/p' "$@" |
		grep : | grep -v '^quotasvc:' | sort -u
}

# locate sets host, scheme and repository of an image, as Docker reads its name.
locate() {
	name=${1%:*}
	first=${name%%/*}
	scheme=https host=registry-1.docker.io
	case $name in
	*.*/* | *:*/*) host=$first repository=${name#*/} ;;
	*/*) repository=$name ;;
	*) repository=library/$name ;;
	esac
	case $host in 127.0.0.1:*) scheme=http ;; esac
}

accepted='application/vnd.oci.image.index.v1+json, application/vnd.docker.distribution.manifest.list.v2+json'
accepted="$accepted, application/vnd.oci.image.manifest.v1+json, application/vnd.docker.distribution.manifest.v2+json"

# head_of stores the headers of an image's manifest.
head_of() {
	curl -sS --max-time 60 --retry 2 --head -H "Accept: $accepted" "$@" \
		"$scheme://$host/v2/$repository/manifests/${image##*:}" >"$dir/headers" 2>"$dir/error" ||
		give_up "$image" "$(tail -n 1 "$dir/error")"
}

# header prints the value of a header.
header() {
	tr -d '\r' <"$dir/headers" | sed -nE "s/^$1: *(.*)/\1/Ip" | tail -n 1
}

# parameter prints a parameter of the registry's challenge.
parameter() {
	header www-authenticate | sed -nE "s/.*$1=\"([^\"]*)\".*/\1/p"
}

for image in $(images "$@"); do
	locate "$image"
	head_of
	if [ -n "$(header www-authenticate)" ]; then
		token=$(curl -sS --max-time 60 --get --data-urlencode "service=$(parameter service)" \
			--data-urlencode "scope=repository:$repository:pull" "$(parameter realm)" 2>"$dir/error" |
			sed -nE 's/.*"(access_)?token" *: *"([^"]+)".*/\2/p')
		head_of -H "Authorization: Bearer $token"
	fi
	digest=$(header docker-content-digest)
	case $digest in
	sha256:*) ;;
	*) give_up "$image" "the registry answers $(head -n 1 "$dir/headers" | tr -d '\r')" ;;
	esac
	echo "$image@$digest"
	pattern=$(printf '%s' "$image" | sed 's/[.]/\\./g')
	printf '%s\n' "s#(^|[= ])$pattern(@sha256:[0-9a-f]{64})?( |\$)#\1$image@$digest\3#" >>"$dir/edits"
done
for file in "$@"; do
	sed -E -f "$dir/edits" "$file" >"$dir/new" && cat "$dir/new" >"$file"
done
