#!/usr/bin/env bash
# tokens.sh [ROUNDS] [SECONDS]: Examples of token ids, 1 KB each, padded to 512, from a local TFRecord: shardtool bench beside tf.data's
# batched parse_example, three ways to pad, in turns; prints records a second, medians and spread, and our ratio to the fastest. Both read
# the same file, which stays in the page cache, and must first give the same number of records and the same sum. Let nothing else run.
# TensorFlow is the one of .ci/interop/requirements.txt (PYTHON names another interpreter that has it).
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../../.." && pwd)
rounds=${1:-5} seconds=${2:-5}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
pinned=$(sha256sum <"$root/.ci/interop/requirements.txt" | cut -c1-16)
python=${PYTHON:-${XDG_CACHE_HOME:-$HOME/.cache}/shardtool-peers/$pinned/bin/python}
[ -x "$python" ] || { echo "no $python: run .ci/peers.sh once, or set PYTHON" >&2; exit 1; }
(cd "$root" && go build -o "$work/shardtool" ./cmd/shardtool && go build -o "$work/tokens" ./benchmarks/peers/tokens)
"$work/tokens" make "${RECORDS:-400000}" "$work/tokens.tfrecord"
"$python" "$here/compare_tokens.py" "$work" "$rounds" "$seconds"
