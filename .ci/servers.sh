#!/usr/bin/env bash
# servers.sh COMMAND...: runs a command beside a real S3 server (versitygw, on a folder that is thrown away) and a proxy in
# front of it that can be made slow and faulty (toxiproxy). Both listen on loopback only and end with the command, whose exit
# status is this script's. The command finds them by:
#   SHARDTOOL_S3_ENDPOINT  http://127.0.0.1:PORT of the server
#   SHARDTOOL_S3_PROXY     the same through the proxy "s3"
#   SHARDTOOL_TOXIPROXY    http://127.0.0.1:PORT of the proxy's API, which makes further proxies and gives them faults
#   SHARDTOOL_NEED_SERVERS 1: a test that misses them fails instead of being skipped
# and AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_REGION, which the server takes.
set -euo pipefail
if [ $# -lt 1 ]; then
	echo "usage: $0 COMMAND..." >&2
	exit 2
fi

bin=${XDG_CACHE_HOME:-$HOME/.cache}/shardtool-tools
tool() { # NAME PACKAGE VERSION: prints where it is, installed once
	local at=$bin/$1-$3
	if [ ! -x "$at" ]; then
		local built
		built=$(mktemp -d)
		GOBIN=$built go install "$2@$3" >&2
		mkdir -p "$bin"
		mv "$built/${2##*/}" "$at"
		rm -r "$built"
	fi
	printf '%s\n' "$at"
}
versitygw=$(tool versitygw github.com/versity/versitygw/cmd/versitygw v1.8.0)
toxiproxy=$(tool toxiproxy github.com/Shopify/toxiproxy/v2/cmd/server v2.5.0)

work=$(mktemp -d)
started=()
stop() {
	local pid
	for pid in "${started[@]}"; do
		kill "$pid" 2>/dev/null || true
		wait "$pid" 2>/dev/null || true
	done
	rm -rf "$work"
}
trap stop EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

answers() { (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }

free_port() { # sets port to one on which nobody listens
	while :; do
		port=$((20000 + RANDOM % 12000)) # below the ports that systems give to connections
		answers "$port" || return 0
	done
}

# start NAME COMMAND...: runs a server, in which PORT stands for one that is free, until it answers; sets port. Another may
# take the port in between, so it is tried more than once.
start() {
	local name=$1 try pid
	shift
	for try in 1 2 3 4 5; do
		free_port
		"${@//PORT/$port}" >"$work/$name.log" 2>&1 &
		pid=$!
		for _ in $(seq 200); do
			kill -0 "$pid" 2>/dev/null || break
			if answers "$port"; then
				started+=("$pid")
				return 0
			fi
			sleep 0.05
		done
		kill "$pid" 2>/dev/null || true
		wait "$pid" 2>/dev/null || true
	done
	echo "$name does not start:" >&2
	cat "$work/$name.log" >&2
	return 1
}

export AWS_ACCESS_KEY_ID=shardtool-test AWS_SECRET_ACCESS_KEY=shardtool-test-secret AWS_REGION=us-east-1
unset AWS_SESSION_TOKEN AWS_PROFILE AWS_ENDPOINT_URL AWS_ENDPOINT_URL_S3
export AWS_CONFIG_FILE=$work/no-config AWS_SHARED_CREDENTIALS_FILE=$work/no-credentials AWS_EC2_METADATA_DISABLED=true
export NO_PROXY=127.0.0.1,localhost no_proxy=127.0.0.1,localhost

mkdir "$work/data" "$work/meta" # the metadata beside the data: not every file system has extended attributes
start versitygw "$versitygw" --quiet --keep-alive --port 127.0.0.1:PORT --access "$AWS_ACCESS_KEY_ID" --secret "$AWS_SECRET_ACCESS_KEY" \
	--region "$AWS_REGION" posix --sidecar "$work/meta" "$work/data"
server=$port
export SHARDTOOL_S3_ENDPOINT=http://127.0.0.1:$server
start toxiproxy "$toxiproxy" -host 127.0.0.1 -port PORT
export SHARDTOOL_TOXIPROXY=http://127.0.0.1:$port

proxied=
for _ in 1 2 3 4 5; do
	free_port
	body="{\"name\":\"s3\",\"listen\":\"127.0.0.1:$port\",\"upstream\":\"127.0.0.1:$server\"}"
	exec 3<>"/dev/tcp/127.0.0.1/${SHARDTOOL_TOXIPROXY##*:}"
	printf 'POST /proxies HTTP/1.0\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s' ${#body} "$body" >&3
	read -r _ status _ <&3
	exec 3>&-
	if [ "$status" = 201 ]; then
		proxied=1
		break
	fi
done
[ -n "$proxied" ] || { echo "toxiproxy makes no proxy" >&2; exit 1; }
export SHARDTOOL_S3_PROXY=http://127.0.0.1:$port SHARDTOOL_NEED_SERVERS=1

"$@"
