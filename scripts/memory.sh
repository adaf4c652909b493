#!/usr/bin/env bash
# Holds predicted against measured peak memory, over policies, microbatches and ranks, with the quick start's backbone of
# 12 MB and one of 214 MB (4 layers, hidden 1024, FFN 2816, 16/4 heads, vocabulary 4096). Takes 25 minutes; times do not
# matter.
# usage: scripts/memory.sh [FOLDER]   (default: a temporary one)
set -euo pipefail
root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
braid="$root/build/release/braid"
folder="${1:-$(mktemp -d)}"

echo "# scripts/memory.sh, $(date -u +%Y-%m-%d): peak resident memory less what was held before loading"
printf '%-8s %-26s %-12s %5s %5s %13s %12s %8s\n' \
  backbone policy microbatches ranks rank predicted_MB measured_MB error
for backbone in tiny small; do
  inputs="$folder/$backbone"
  "$braid" init "$inputs" --backbone "$backbone" --overwrite --quiet
  for ranks in 1 2; do
    profile="$inputs/profile$ranks.json"
    "$braid" profile --workload "$inputs/workload.yaml" --ranks "$ranks" --out "$profile" --overwrite --quiet >/dev/null
    for plan in "sl-peft:pad_to=none 2" "hf-peft:pad_to=none 2" "hf-peft 4" "gpipe 4" "megatron-pp 1" \
      "megatron-pp:pad_to=none 3" "muxtune:chunk=64 3"; do
      read -r policy microbatches <<<"$plan"
      "$braid" validate --prefer speed --workload "$inputs/workload.yaml" --profile "$profile" --policy "$policy" \
        --microbatches "$microbatches" --ranks "$ranks" --windows 4 --runs 1 --json >"$inputs/comparison.json" </dev/null
      python3 - "$inputs/comparison.json" "$backbone" "$policy" "$microbatches" "$ranks" <<'PY'
import json, sys
backbone, policy, microbatches, ranks = sys.argv[2:]
for rank, memory in enumerate(json.load(open(sys.argv[1]))["peak_memory_bytes"]):
    predicted, measured = memory["predicted"] / 1e6, memory["measured"] / 1e6
    print(f"{backbone:8} {policy:26} {microbatches:12} {ranks:>5} {rank:5} {predicted:13.1f} {measured:12.1f} "
          f"{memory['error'] * 100:+7.1f}%")
PY
    done
  done
done
