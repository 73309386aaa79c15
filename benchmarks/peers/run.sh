#!/usr/bin/env bash
# run.sh [ROUNDS] [ARGUMENT...]: shardtool beside its peers and libjpeg-turbo, in turns, ROUNDS times (5); prints one table. ARGUMENTs
# go to compare.py. Let nothing else run meanwhile: five rounds take about half an hour. SHARDTOOL_PHOTOS is a folder with the *.jpg to take
# instead of those of fixtures/photos.
# What it installs and makes is kept in ${XDG_CACHE_HOME:-~/.cache}/shardtool-peers-bench, about 9 GB: torch comes with CUDA.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
rounds=${1:-5}
[ $# -eq 0 ] || shift
work=${XDG_CACHE_HOME:-$HOME/.cache}/shardtool-peers-bench
mkdir -p "$work"

# Programs of Debian: for ref.c, for taskset, and FFmpeg's libraries, which SPDL does not bring.
missing=()
for pair in /usr/bin/gcc:gcc /usr/bin/make:make /usr/include/jpeglib.h:libjpeg62-turbo-dev /usr/bin/taskset:util-linux \
	/usr/lib/x86_64-linux-gnu/libavdevice.so.59:libavdevice59; do
	[ -e "${pair%%:*}" ] || missing+=("${pair##*:}")
done
if [ ${#missing[@]} -gt 0 ]; then
	echo "installing ${missing[*]}" >&2
	{ apt-get install -y -qq "${missing[@]}" || { apt-get update -qq && apt-get install -y -qq "${missing[@]}"; }; } >/dev/null
fi

bash "$here/install.sh" "$work"

(cd "$root" && go build -o "$work/shardtool" ./cmd/shardtool && go build -o "$work/fixed" ./benchmarks/peers/fixed)
make -s -C "$here/libjpeg" OUT="$work"

# The photographs as files, and packed into four shards of each format.
rm -rf "$work/photos" "$work/shards"
mkdir "$work/shards"
if [ -n "${SHARDTOOL_PHOTOS:-}" ]; then
	mkdir "$work/photos"
	cp "$SHARDTOOL_PHOTOS"/*.jpg "$work/photos"
else
	"$work/shardtool" extract --quiet --preset imagenet --field 'jpg;image/encoded' "$root"/fixtures/photos/*.tar "$root"/fixtures/photos/*.tfrecord "$work/photos"
	find "$work/photos" -name '*.%nokey' -delete # marks of samples that had no key
fi
count=$(find "$work/photos" -type f | wc -l)
for suffix in tar tfrecord; do
	"$work/shardtool" pack --quiet --count $(((count + 3) / 4)) "$work/photos" "$work/shards/photos-%03d.$suffix"
	"$work/shardtool" index --quiet "$work/shards"/photos-*."$suffix" >/dev/null
done
"$work/venv/bin/python" "$here/compare.py" "$work" --rounds "$rounds" "$@"
