#!/usr/bin/env bash
# Runs the benchmarks whose figures stand in results/benchmarks.txt, or with `cluster` those of simulated clusters
# (results/cluster/benchmarks.txt), with Philly itself where BRAID_TRACES has it. Run it on a quiet machine.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
cmake --preset release >/dev/null
benchmarks=(training host replay costmodel planning)
[[ "${1:-}" == cluster ]] && benchmarks=(cluster)
for name in "${benchmarks[@]}"; do
  cmake --build --preset release --target "${name}_benchmark" --parallel "$(nproc)" >/dev/null
done
echo "# scripts/benchmark.sh${1:+ $1}, $(date -u +%Y-%m-%d), $(sed -n 's/^model name.*: //p' /proc/cpuinfo | head -n 1), one core"
# A process each for clusters: their peak of memory is a process's.
heads() { [[ "$1" == cluster ]] && "build/release/$1_benchmark" --benchmark_list_tests || echo ".*"; }
for name in "${benchmarks[@]}"; do
  lines=0
  heads "$name" | while read -r one; do
    OMP_NUM_THREADS=1 taskset -c 0 "build/release/${name}_benchmark" --benchmark_filter="^$one\$" |
      tail -n "+$((lines + 1))"
    lines=3
  done
done
