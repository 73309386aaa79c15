#!/usr/bin/env bash
# floors.sh [COUNT [FLAG...]]: the measurements of docs/benchmarks.md, each reader beside its floor, interleaved in one run,
# COUNT times (5). FLAGs go to go test, such as -benchtime 1x. Let nothing else run meanwhile.
set -euo pipefail
cd "$(dirname "$0")/.."
count=${1:-5}
[ $# -eq 0 ] || shift
go test -run '^$' -bench '^Benchmark(Reader|Scan)' -count "$count" "$@" ./format/tfrecord ./format/tarshard
