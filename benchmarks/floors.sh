#!/usr/bin/env bash
# The measurements of docs/benchmarks.md: each reader beside its floor, interleaved in one run. Let nothing else run meanwhile.
set -euo pipefail
cd "$(dirname "$0")/.."
count=${1:-5}
go test -run '^$' -bench '^BenchmarkReader' -count "$count" ./format/tfrecord ./format/tarshard
go test -run '^$' -bench '^BenchmarkScan' -count "$count" ./format/tfrecord ./format/tarshard
