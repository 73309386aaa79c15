#!/usr/bin/env bash
# peers.sh SHARDTOOL [NAME...]: lets TensorFlow, Python's webdataset, wids, tfrecord and tarfile, GNU tar and bsdtar read
# what SHARDTOOL writes, and SHARDTOOL what they wrote, and compares. With NAMEs, only checks whose name holds one of them.
# Packages are installed once, into a folder named after the pinned versions.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
if [ $# -lt 1 ]; then
	echo "usage: $0 SHARDTOOL [NAME...]" >&2
	exit 2
fi
tool=$(realpath "$1")
shift

pinned=$here/interop/requirements.txt
venv=${XDG_CACHE_HOME:-$HOME/.cache}/shardtool-peers/$(sha256sum <"$pinned" | cut -c1-16)
if [ ! -e "$venv/complete" ]; then
	rm -rf "$venv"
	python3 -m venv "$venv"
	"$venv/bin/pip" install -q --disable-pip-version-check -r "$pinned"
	touch "$venv/complete"
fi
for program in bsdtar:libarchive-tools zstd:zstd; do
	if ! command -v "${program%%:*}" >/dev/null && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
		apt-get install -y -qq "${program##*:}" >/dev/null 2>&1 ||
			{ apt-get update -qq && apt-get install -y -qq "${program##*:}"; } >/dev/null 2>&1 || true
	fi
done
exec "$venv/bin/python" "$here/interop/checks.py" "$tool" "$@"
