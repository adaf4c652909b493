#!/usr/bin/env bash
# Runs the benchmarks whose figures stand in results/benchmarks.txt. Run it on a quiet machine.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
cmake --preset release >/dev/null
cmake --build --preset release --target costmodel_benchmark planning_benchmark replay_benchmark training_benchmark --parallel "$(nproc)" >/dev/null
echo "# scripts/benchmark.sh, $(date -u +%Y-%m-%d), $(sed -n 's/^model name.*: //p' /proc/cpuinfo | head -n 1), one core"
OMP_NUM_THREADS=1 taskset -c 0 build/release/training_benchmark 2>/dev/null
OMP_NUM_THREADS=1 taskset -c 0 build/release/replay_benchmark 2>/dev/null
OMP_NUM_THREADS=1 taskset -c 0 build/release/costmodel_benchmark 2>/dev/null
OMP_NUM_THREADS=1 taskset -c 0 build/release/planning_benchmark 2>/dev/null
