#!/usr/bin/env bash
# The measurements of docs/benchmarks.md: each reader beside its floor, interleaved in one run. Let nothing else run meanwhile.
set -euo pipefail
cd "$(dirname "$0")/.."
# More arguments go to go test, such as -benchtime 1x.
count=${1:-5}
[ $# -eq 0 ] || shift
go test -run '^$' -bench '^Benchmark(Reader|Scan)' -count "$count" "$@" ./format/tfrecord ./format/tarshard
