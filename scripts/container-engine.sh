#!/usr/bin/env bash
# Runs a command where a container engine answers: scripts/container-engine.sh docker info
#
# The engine is the one at DOCKER_HOST, or else the one at Docker's usual address. If none answers and DOCKER_HOST is
# empty, root on Linux gets an engine for this command alone. Its data is in a temporary directory, it adds no rules to
# the firewall, and it ends with the command, also after an interruption. On Debian, missing programs come from packages
# into bin/docker, without an installation. If there is no engine, the script prints one line and fails.
set -eu
programs=$(cd "$(dirname "$0")/.." && pwd)/bin/docker
libraries=$(dpkg-architecture -qDEB_HOST_MULTIARCH 2>/dev/null || echo "$(uname -m)-linux-gnu")

work=$(mktemp -d)
log=$work/log
engine='' command=''
# macOS has no timeout.
type timeout >/dev/null 2>&1 || timeout() { shift && "$@"; }

give_up() {
	printf 'no container engine: %s\n' "$*" >&2
	exit 1
}

have_client() {
	timeout 20 docker compose version >/dev/null 2>&1 && timeout 20 docker buildx version >/dev/null 2>&1
}

answers() {
	timeout 20 docker version >/dev/null 2>&1
}

# need_programs puts the programs in bin/docker before those of the machine, and gets them first if they are not there.
need_programs() {
	if [ ! -d "$programs" ]; then
		type dpkg-deb >/dev/null 2>&1 && grep -qx 'ID=debian' /etc/os-release && [ "$(id -u)" = 0 ] ||
			give_up "$1, and only root on Debian gets them"
		get_programs || give_up "$1, and the packages cannot be had: $(tail -n 1 "$log")"
	fi
	export PATH="$programs/usr/sbin:$programs/usr/bin:$PATH"
	export DOCKER_CONFIG="$work/config"
	mkdir -p "$DOCKER_CONFIG"
	echo "{\"cliPluginsExtraDirs\": [\"$programs/usr/libexec/docker/cli-plugins\"]}" >"$DOCKER_CONFIG/config.json"
}

download() {
	timeout 900 apt-get -q -o Acquire::Retries=2 -o Acquire::http::Timeout=30 "$@" >>"$log" 2>&1 </dev/null
}

# own downloads runc and iptables, and the libraries that the machine lacks, from the machine's own release.
own() {
	download install -y --download-only --no-install-recommends -o Dir::Cache::archives="$work/own" runc iptables
}

# get_programs extracts the packages. Debian 12 has no Docker with `docker compose`, so those programs come from the
# next release. They need no newer C library; runc does, so it comes from the machine's own release.
get_programs() {
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
	rm -rf "$programs.new"
	mkdir -p "$programs.new"
	for package in "$work"/own/*.deb; do
		dpkg-deb --fsys-tarfile "$package" | tar -x -C "$programs.new" --exclude='./usr/share/*' || return 1
	done
	[ ! -e "$programs.new/usr/sbin/xtables-nft-multi" ] || ln -sf xtables-nft-multi "$programs.new/usr/sbin/iptables"
	mv "$programs.new" "$programs" # whole, or not at all
}

leave() {
	status=$?
	trap - EXIT
	trap '' INT TERM HUP # a second Ctrl-C leaves nothing behind
	if [ -n "$command" ]; then
		end -- "-$command"
	fi
	if [ -n "$engine" ]; then
		end_engine || status=1
	fi
	rm -rf "$work" || status=1
	exit $status
}
trap leave EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM

# end ends a process or a process group of this script within a minute.
end() {
	kill "$@" 2>/dev/null || return 0
	for _ in $(seq 300); do
		kill -0 "$@" 2>/dev/null || return 0
		sleep 0.2
	done
	kill -9 "$@" 2>/dev/null || :
}

# end_engine removes what the command has left, and ends the engine. If a process stays, it says so and fails.
end_engine() {
	for id in $(timeout 60 docker ps -aq); do timeout 60 docker rm -fv "$id" >/dev/null || :; done
	timeout 60 docker network prune -f >/dev/null || :
	end "$engine"
	# If dockerd has died, or has not ended in time, these remain. The children of its helpers are the containers.
	for id in $(pgrep -f "$work/engine"); do kill -9 $(pgrep -P "$id") "$id" 2>/dev/null || :; done
	awk -v dir="$work/" 'index($2, dir) == 1 { print $2 }' /proc/mounts | sort -r |
		while read -r mount; do umount -l "$mount"; done
	for _ in $(seq 50); do
		pgrep -f "$work/engine" >/dev/null || return 0
		sleep 0.2
	done
	echo 'the container engine left these processes' >&2
	pgrep -af "$work/engine" >&2
	return 1
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
	local until=$((SECONDS + 60))
	while kill -0 "$engine" 2>/dev/null && [ "$SECONDS" -lt "$until" ]; do
		answers && return 0
		sleep 0.2
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
set -m # the command gets a process group, so that a signal ends all of it
"$@" </dev/null &
command=$!
set +m
wait "$command"
