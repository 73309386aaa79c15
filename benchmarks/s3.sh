#!/usr/bin/env bash
# s3.sh [ROUNDS] [FLAG...]: reading from an S3 server over four slow connections, in turns, ROUNDS times (5): plain GETs, the store, the
# loader, webdataset and tf.data. FLAGs go to benchmarks/s3, such as -shards 2. PEERS= leaves the peers out. Let nothing else run.
# What it installs is kept where benchmarks/peers/run.sh keeps its own.
set -euo pipefail
cd "$(dirname "$0")/.."
rounds=${1:-5}
[ $# -eq 0 ] || shift
built=$(mktemp -d)
trap 'rm -rf "$built"' EXIT
go build -o "$built/s3" ./benchmarks/s3
peers=()
if [ -n "${PEERS-yes}" ]; then
	work=${XDG_CACHE_HOME:-$HOME/.cache}/shardtool-peers-bench
	bash benchmarks/peers/install.sh "$work" arrays torch tfio
	peers=(-peer "webdataset, pipe:curl, torch's loader=$work/venv/bin/python benchmarks/peers/s3_webdataset.py"
		-peer "tf.data, tensorflow-io, TFRecord, 1 parallel read=$work/tfio/bin/python benchmarks/peers/s3_tfdata.py 1"
		-peer "tf.data, tensorflow-io, TFRecord, 4 parallel reads=$work/tfio/bin/python benchmarks/peers/s3_tfdata.py 4")
fi
bash .ci/servers.sh "$built/s3" -rounds "$rounds" "${peers[@]}" "$@"
