#!/usr/bin/env bash
# Counts the instructions that replaying 10,000 to a million jobs as recorded takes, whose figures stand in
# results/cluster/instructions.txt: growth without what caches make of it. Needs valgrind, which knows no AVX-512; the
# benchmark is built anew without it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
cmake --preset release -B build/portable -DBRAID_NATIVE=OFF >/dev/null
cmake --build build/portable --target cluster_benchmark --parallel "$(nproc)" >/dev/null
echo "# scripts/count_instructions.sh: scheduler, jobs, instructions of one simulation"
iterations=3
for scheduler in fcfs easy; do
  for jobs in 10000 100000 1000000; do
    counted="$(valgrind --tool=callgrind --callgrind-out-file=/dev/null --toggle-collect='braid::sim::simulate_cluster*' \
      build/portable/cluster_benchmark --benchmark_filter="^replay_trace/$scheduler/jobs:$jobs/" 2>&1 >/dev/null |
      sed -n 's/.*Collected : //p')"
    echo "$scheduler $jobs $((counted / iterations))"
  done
done
