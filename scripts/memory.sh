#!/usr/bin/env bash
# Holds predicted against measured peak memory with a backbone of 214 MB (4 layers, hidden 1024, FFN 2816, 16/4 heads,
# vocabulary 4096), over policies, microbatches and ranks. The profile is measured briefly; memory does not depend on it.
# usage: scripts/memory.sh [FOLDER]   (default: a temporary one)
set -euo pipefail
root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
braid="$root/build/release/braid"
folder="${1:-$(mktemp -d)}"

"$braid" init "$folder" --backbone small --overwrite --quiet
echo "# scripts/memory.sh, $(date -u +%Y-%m-%d): peak resident memory less what was held before loading"
printf '%-26s %-12s %5s %5s %13s %12s %8s\n' policy microbatches ranks rank predicted_MB measured_MB error
for ranks in 1 2; do
  "$braid" profile --workload "$folder/workload.yaml" --ranks "$ranks" --out "$folder/profile$ranks.json" --overwrite --quiet >/dev/null
  for plan in "sl-peft:pad_to=none 2" "hf-peft:pad_to=none 2" "hf-peft 4" "gpipe 4" "megatron-pp 1" "megatron-pp:pad_to=none 3" \
    "muxtune:chunk=64 3"; do
    read -r policy microbatches <<<"$plan"
    "$braid" validate --workload "$folder/workload.yaml" --profile "$folder/profile$ranks.json" --policy "$policy" \
      --microbatches "$microbatches" --ranks "$ranks" --windows 4 --runs 1 --json >"$folder/comparison.json" </dev/null
    python3 - "$folder/comparison.json" "$policy" "$microbatches" "$ranks" <<'PY'
import json, sys
for rank, memory in enumerate(json.load(open(sys.argv[1]))["peak_memory_bytes"]):
    print(f"{sys.argv[2]:26} {sys.argv[3]:12} {sys.argv[4]:>5} {rank:5} {memory['predicted']/1e6:13.1f} {memory['measured']/1e6:12.1f} {memory['error']*100:+7.1f}%")
PY
  done
done
