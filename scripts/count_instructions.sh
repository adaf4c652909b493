#!/usr/bin/env bash
# Counts the instructions that replaying 10,000 to a million jobs as recorded takes, and a study of 2,000 jobs of mixed
# tasks that share instances, most of which are the planner's estimates. The figures stand in
# results/cluster/instructions.txt: growth without what caches make of it. Needs valgrind, which knows no AVX-512; the
# benchmark is built anew without it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
cmake --preset release -B build/portable -DBRAID_NATIVE=OFF >/dev/null
cmake --build build/portable --target cluster_benchmark --parallel "$(nproc)" >/dev/null

count() { # the function that is counted, the benchmark
  valgrind --tool=callgrind --callgrind-out-file=/dev/null --toggle-collect="$1" \
    build/portable/cluster_benchmark --benchmark_filter="^$2" 2>&1 >/dev/null | sed -n 's/.*Collected : //p'
}

echo "# scripts/count_instructions.sh: scheduler, jobs, instructions of one simulation"
iterations=3
for scheduler in fcfs easy; do
  for jobs in 10000 100000 1000000; do
    counted="$(count 'braid::sim::simulate_cluster*' "replay_trace/$scheduler/jobs:$jobs/")"
    echo "$scheduler $jobs $((counted / iterations))"
  done
done
echo "fcfs, mixed tasks sharing 2000 $(count 'braid::sim::Study::run(*' "share_instances/fcfs_mixed/jobs:2000/")"
