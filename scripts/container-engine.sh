#!/bin/sh
# Runs a command where a container engine answers: scripts/container-engine.sh docker info
#
# The engine is the one at DOCKER_HOST, or else the one at Docker's usual address. If none answers and DOCKER_HOST is
# empty, root on Linux gets an engine for this command alone. Its data is in a temporary directory, it adds no rules to
# the firewall, and it ends with the command. On Debian, missing programs come from packages into bin/docker, without an
# installation. If there is no engine, the script prints one line and fails.
set -eu
programs=$(cd "$(dirname "$0")/.." && pwd)/bin/docker
libraries=$(dpkg-architecture -qDEB_HOST_MULTIARCH 2>/dev/null || echo "$(uname -m)-linux-gnu")

work=$(mktemp -d)
log=$work/log
engine=

give_up() {
	printf 'no container engine: %s\n' "$*" >&2
	exit 1
}

have_client() {
	docker compose version >/dev/null 2>&1 && docker buildx version >/dev/null 2>&1
}

answers() {
	timeout 20 docker version >/dev/null 2>&1
}

# need_programs puts the programs in bin/docker before those of the machine, and gets them first if they are not there.
need_programs() {
	[ -x "$programs/usr/sbin/dockerd" ] || get_programs ||
		give_up "$1, and only root on Debian gets them: $(tail -n 1 "$log" 2>/dev/null)"
	export PATH="$programs/usr/sbin:$programs/usr/bin:$PATH"
	export DOCKER_CONFIG="$programs/config"
}

download() {
	apt-get -q -o Acquire::Retries=2 -o Acquire::http::Timeout=30 "$@" >>"$log" 2>&1 </dev/null
}

# own downloads runc and iptables, and the libraries that the machine lacks, from the machine's own release.
own() {
	download install -y --download-only --no-install-recommends -o Dir::Cache::archives="$work/own" runc iptables
}

# get_programs extracts the packages. Debian 12 has no Docker with `docker compose`, so those programs come from the
# next release. They need no newer C library; runc does, so it comes from the machine's own release.
get_programs() {
	command -v dpkg-deb >/dev/null && grep -qx 'ID=debian' /etc/os-release || return 1
	[ "$(id -u)" = 0 ] || return 1
	echo 'getting Docker from packages into bin/docker (once; 90 MB) ...' >&2
	mkdir -p "$work/own/partial" "$work/apt/lists/partial" "$work/apt/archives/partial"
	own || { download update && own; } || return 1
	mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' | grep -v security | head -n 1)
	keys=/usr/share/keyrings/debian-archive-keyring.gpg
	echo "deb [signed-by=$keys] $mirror trixie main" >"$work/apt/sources"
	: >"$work/apt/status"
	cat >"$work/apt/config" <<-END
		Dir::State "$work/apt"; Dir::State::status "$work/apt/status"; Dir::Cache "$work/apt";
		Dir::Etc::sourcelist "$work/apt/sources"; Dir::Etc::sourceparts "-"; APT::Sandbox::User "root";
	END
	(
		export APT_CONFIG="$work/apt/config"
		cd "$work/own" && download update &&
			download download docker.io docker-cli docker-compose docker-buildx containerd
	) || return 1
	rm -rf "$programs"
	mkdir -p "$programs/config"
	for package in "$work"/own/*.deb; do
		dpkg-deb --fsys-tarfile "$package" | tar -x -C "$programs" --exclude='./usr/share/*' || return 1
	done
	[ ! -e "$programs/usr/sbin/xtables-nft-multi" ] || ln -sf xtables-nft-multi "$programs/usr/sbin/iptables"
	echo "{\"cliPluginsExtraDirs\": [\"$programs/usr/libexec/docker/cli-plugins\"]}" >"$programs/config/config.json"
}

leave() {
	status=$?
	trap - EXIT
	if [ -n "$engine" ]; then
		end_engine || status=1
	fi
	rm -rf "$work" || status=1
	exit $status
}
trap leave EXIT
trap 'exit 130' INT TERM

# end_engine removes what the command has left, and ends the engine. If a process stays, it says so and fails.
end_engine() {
	for id in $(timeout 60 docker ps -aq); do timeout 60 docker rm -fv "$id" >/dev/null || :; done
	timeout 60 docker network prune -f >/dev/null || :
	kill "$engine"
	for _ in $(seq 60); do
		kill -0 "$engine" 2>/dev/null || break
		sleep 1
	done
	kill -9 "$engine" 2>/dev/null || :
	wait "$engine" 2>/dev/null || :
	awk -v dir="$work/" 'index($2, dir) == 1 { print $2 }' /proc/mounts | sort -r |
		while read -r mount; do umount -l "$mount"; done
	! pgrep -af "$work/engine" >&2 || { echo 'the container engine left these processes' >&2; return 1; }
}

# start_engine starts an engine. It has no default network, because that one needs rules in the firewall.
start_engine() {
	command -v dockerd >/dev/null || need_programs 'there is no dockerd'
	mkdir "$work/engine"
	export DOCKER_HOST="unix://$work/engine/socket"
	LD_LIBRARY_PATH="$programs/usr/lib/$libraries:$programs/lib/$libraries" \
		XTABLES_LIBDIR="$programs/usr/lib/$libraries/xtables" \
		setsid dockerd --host "$DOCKER_HOST" --pidfile "$work/engine/pid" \
		--data-root "$work/engine/data" --exec-root "$work/engine/run" \
		--bridge=none --iptables=false --ip6tables=false --ip-forward=false >"$log" 2>&1 </dev/null &
	engine=$!
	for _ in $(seq 60); do
		answers && return 0
		kill -0 "$engine" 2>/dev/null || break
		sleep 1
	done
	give_up "dockerd does not start here: $(grep -v level=info "$log" | tail -n 1)"
}

have_client || need_programs 'docker, docker compose or docker buildx is missing'
if ! answers; then
	[ -z "${DOCKER_HOST:-}" ] || give_up "nobody answers at DOCKER_HOST, $DOCKER_HOST"
	[ "$(uname)" = Linux ] && [ "$(id -u)" = 0 ] ||
		give_up 'nobody answers at the usual address, and only root on Linux can start one'
	start_engine
fi
"$@"
