#!/usr/bin/env bash
# Holds predicted against measured step times: every plan of results/accuracy/plans.txt, on one rank and on two, with profiles
# measured first. Prints a table: the prediction's error, how much longer a reference pass took between the windows than it
# did for the profile (pace), and the error at the profile's pace. Run it on a quiet machine.
# usage: scripts/accuracy.sh [FOLDER]   (default: a temporary one)
set -euo pipefail
root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
braid="$root/build/release/braid"
folder="${1:-$(mktemp -d)}"

"$braid" init "$folder" --overwrite --quiet
cp "$root/results/accuracy/workload.yaml" "$folder/workload.yaml"
for ranks in 1 2; do
  "$braid" profile --workload "$folder/workload.yaml" --ranks "$ranks" --out "$folder/profile$ranks.json" --overwrite --quiet | sed -n 1p >&2
done

echo "# scripts/accuracy.sh, $(date -u +%Y-%m-%d), $(grep -m1 'model name' /proc/cpuinfo | cut -d: -f2- | xargs), $(nproc) cores; a step's time, mean over 5 windows of the median of 5 runs"
printf '%-34s %-12s %5s %12s %12s %8s %8s %9s\n' policy microbatches ranks predicted_ms measured_ms error pace at_pace
grep -v '^#' "$root/results/accuracy/plans.txt" | while read -r policy microbatches; do
  for ranks in 1 2; do
    "$braid" validate --workload "$folder/workload.yaml" --profile "$folder/profile$ranks.json" --policy "$policy" \
      --microbatches "$microbatches" --ranks "$ranks" --json --quiet >"$folder/comparison.json" </dev/null
    python3 - "$folder/comparison.json" "$policy" "$microbatches" "$ranks" <<'PY'
import json, sys
comparison = json.load(open(sys.argv[1]))
step = comparison["step_seconds"]
reference = comparison["reference_pass_seconds"]
pace = reference["measured"] / reference["predicted"] - 1
at_pace = comparison["step_seconds_at_profiled_pace"]["error"]
print(f"{sys.argv[2]:34} {sys.argv[3]:12} {sys.argv[4]:>5} {step['predicted']*1e3:12.1f} {step['measured']*1e3:12.1f} "
      f"{step['error']*100:+7.1f}% {pace*100:+7.1f}% {at_pace*100:+8.1f}%")
PY
  done
done
