#!/usr/bin/env bash
# Holds what braid predicts against what it measures, on workloads of many shapes (scripts/accuracy/make_workload.py), each
# from an empty cache as a new user's, on one rank and on two, and writes
#   results/accuracy/steps.txt       of each policy's plan the step and the peak memory, predicted and measured; how the
#                                    policies rank; how long the first plan took
#   results/costmodel/measured.txt   each point of two of the profiles, predicted by the rest of its curve
# Run it on a quiet machine; it takes three hours. What FOLDER holds is not measured again.
# usage: scripts/accuracy.sh [FOLDER]   (default: a temporary one)
set -euo pipefail
root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
braid="$root/build/release/braid"
folder="${1:-$(mktemp -d)}"

python3 "$root/scripts/accuracy/measure.py" "$braid" "$folder"
measured="$(date -u +%Y-%m-%d), $(grep -m1 'model name' /proc/cpuinfo | cut -d: -f2- | xargs), $(nproc) cores"
{
  echo "# scripts/accuracy.sh, $measured; means over windows of medians over runs; memory: the rank furthest off"
  python3 "$root/scripts/accuracy/report.py" "$folder/rows.jsonl"
} >"$folder/steps.txt"
{
  echo "# scripts/accuracy.sh, $measured; the workload narrow-long, one rank and two: |predicted / measured - 1|"
  for ranks in 1 2; do "$braid" profile --crossvalidate "$folder/cache-narrow-long-$ranks"/braid/*.json; done
} >"$folder/measured.txt"
mv "$folder/steps.txt" "$root/results/accuracy/steps.txt"
mv "$folder/measured.txt" "$root/results/costmodel/measured.txt"
