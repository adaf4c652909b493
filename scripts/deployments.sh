#!/usr/bin/env bash
# Holds what braid predicts of deployments on two CPU ranks against what it measures: two tensor-parallel shards, two
# stages (1F1B and interleaved), two replicas, weights in shares, and one rank; of the example's tasks, from an empty cache as a new user's.
# Writes results/validate-cpu/deployments.txt. Run it on a quiet machine; it takes five minutes.
set -euo pipefail
root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
braid="$root/build/release/braid"
folder="$(mktemp -d)"
trap 'rm -rf "$folder"' EXIT
export XDG_CACHE_HOME="$folder/cache"
"$braid" init "$folder/example" --quiet >/dev/null 2>&1 || "$braid" init "$folder/example" >/dev/null
mkdir -p "$root/results/validate-cpu"
measure() { # WHAT POLICY FLAGS...
  local what="$1" policy="$2"
  shift 2
  "$braid" plan --workload "$folder/example/workload.yaml" --policy "$policy" "$@" --quiet --overwrite \
    --out "$folder/plan.json" >/dev/null
  "$braid" validate --plan "$folder/plan.json" --quiet --json --overwrite --out "$folder/comparison.json" >/dev/null
  python3 - "$what" "$policy" "$folder/comparison.json" <<'PY'
import json
import sys

what, policy, file = sys.argv[1:]
comparison = json.load(open(file, encoding="utf-8"))
step, pace = comparison["step_seconds"], comparison["step_seconds_at_profiled_pace"]
bubble = comparison["bubble_ratio"]
memory = max((abs(one["error"]), one["error"]) for one in comparison["peak_memory_bytes"])[1]
print(
    f"{what:24} {policy:20} {1e3 * step['predicted']:11.1f} {1e3 * step['measured']:10.1f} {100 * step['error']:+8.1f} %"
    f" {100 * pace['error']:+8.1f} % {100 * memory:+8.1f} % {100 * bubble['predicted']:9.1f} {100 * bubble['measured']:9.1f}"
)
PY
}
{
  echo "# scripts/deployments.sh, $(date -u +%Y-%m-%d), $(grep -m1 'model name' /proc/cpuinfo | cut -d: -f2- | xargs), $(nproc) cores: a mean window, ms;"
  echo "# errors are predicted over measured: of the window, of it at the profile's pace, and of the memory furthest off;"
  echo "# bubbles are the share of the ranks' time in which they compute nothing, %: as replayed, and measured"
  printf '%-24s %-20s %11s %10s %10s %10s %10s %9s %9s\n' deployment policy predicted measured error "at pace" memory \
    replayed bubble
  measure "one rank" megatron-pp --ranks 1
  measure "two shards (tp 2)" nemo --ranks 2 --tp 2 --pp 1
  measure "two stages (pp 2)" megatron-pp --ranks 2 --pp 2
  measure "two stages, interleaved" nemo --ranks 2 --tp 1 --pp 2
  measure "two stages, mlora" mlora --ranks 2 --pp 2
  measure "two stages, muxtune" muxtune --ranks 2 --tp 1 --pp 2
  measure "two replicas (dp 2)" nemo --ranks 2 --tp 1 --pp 1
  measure "two replicas, lobra" lobra --ranks 2 --tp 1 --pp 1
  measure "weights in two shares" megatron-fsdp --ranks 2
} | tee "$root/results/validate-cpu/deployments.txt"
