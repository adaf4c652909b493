#!/usr/bin/env bash
# Holds what profiles predict against what was measured, on one rank and on two, and writes
#   results/costmodel/measured.txt   each point of the profiles, predicted by the rest of its curve
#   results/accuracy/steps.txt       step times of the plans of results/accuracy/plans.txt: the prediction's error, how much
#                                    longer a reference pass took between the windows than it did for the profile (pace),
#                                    and the error at the profile's pace
# Profiles are measured first, of results/accuracy/profiled.yaml: the plans' tasks have other ranks, lengths and batch sizes.
# Run it on a quiet machine; it takes a quarter of an hour.
# usage: scripts/accuracy.sh [FOLDER]   (default: a temporary one)
set -euo pipefail
root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
braid="$root/build/release/braid"
folder="${1:-$(mktemp -d)}"
measured="$(date -u +%Y-%m-%d), $(grep -m1 'model name' /proc/cpuinfo | cut -d: -f2- | xargs), $(nproc) cores"

"$braid" init "$folder" --overwrite --quiet
cp "$root/results/accuracy/profiled.yaml" "$folder/profiled.yaml"
for tasks in 2 3 4 6; do
  awk -v most="$tasks" '/^  - name:/ { seen++ } seen <= most' "$root/results/accuracy/workload.yaml" >"$folder/workload$tasks.yaml"
done
for ranks in 1 2; do
  "$braid" profile --workload "$folder/profiled.yaml" --ranks "$ranks" --out "$folder/profile$ranks.json" --overwrite --quiet | sed -n 1p >&2
done
{
  echo "# scripts/accuracy.sh, $measured; one rank and two: |predicted / measured - 1|"
  for ranks in 1 2; do "$braid" profile --crossvalidate "$folder/profile$ranks.json"; done
} >"$folder/measured.txt"
mv "$folder/measured.txt" "$root/results/costmodel/measured.txt"

grep -v '^#' "$root/results/accuracy/plans.txt" | while read -r policy microbatches tasks; do
  for ranks in 1 2; do
    echo "$policy, $microbatches microbatches, $tasks tasks, $ranks ranks" >&2
    "$braid" validate --prefer speed --workload "$folder/workload$tasks.yaml" --profile "$folder/profile$ranks.json" --policy "$policy" \
      --microbatches "$microbatches" --ranks "$ranks" --json --quiet </dev/null | tr -d '\n'
    echo " $ranks $microbatches $tasks $policy"
  done
done >"$folder/comparisons.txt"
{
  echo "# scripts/accuracy.sh, $measured; a step's time, mean over 5 windows of the median of 5 runs"
  python3 - "$folder/comparisons.txt" <<'PY'
import json
import statistics
import sys

print(f"{'policy':34} {'microbatches':12} {'tasks':>5} {'ranks':>5} {'predicted_ms':>12} {'measured_ms':>12} {'error':>8} {'pace':>8} {'at_pace':>9}")
errors = {"1": [], "2": []}
for line in open(sys.argv[1]):
    text, ranks, microbatches, tasks, policy = line.rsplit(maxsplit=4)
    comparison = json.loads(text)
    step, reference = comparison["step_seconds"], comparison["reference_pass_seconds"]
    pace = reference["measured"] / reference["predicted"] - 1
    at_pace = comparison["step_seconds_at_profiled_pace"]["error"]
    errors[ranks].append((abs(step["error"]), abs(at_pace)))
    print(f"{policy:34} {microbatches:12} {tasks:>5} {ranks:>5} {step['predicted']*1e3:12.1f} {step['measured']*1e3:12.1f} "
          f"{step['error']:+8.1%} {pace:+8.1%} {at_pace:+9.1%}")
for name, summary in (("mean", statistics.mean), ("worst", max)):
    for ranks, rows in errors.items():
        by_clock, at_pace = (summary(column) for column in zip(*rows))
        print(f"{name:53} {ranks:>5} {'':25} {by_clock:8.1%} {'':8} {at_pace:9.1%}")
PY
} >"$folder/steps.txt"
mv "$folder/steps.txt" "$root/results/accuracy/steps.txt"
