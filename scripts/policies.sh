#!/usr/bin/env bash
# Holds the policies that train on CPU ranks against megatron-pp on two stages: the ratio of their times that the plans
# predict, and the one of training the example's four tasks, each policy's whole run in turn, so that a slow moment of the
# machine meets all of them. Prints a table; run it on a quiet machine.
# usage: scripts/policies.sh [ROUNDS] [FOLDER]   (default: 7, a temporary one)
set -euo pipefail
root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
braid="$root/build/release/braid"
rounds="${1:-7}"
folder="${2:-$(mktemp -d)}"
policies=(megatron-pp:pad_to=none gpipe:pad_to=none mlora:pad_to=none mlora:pad_to=none:mode=gpipe
  muxtune:alignment=packed:pad_to=none muxtune:pad_to=none)

"$braid" init "$folder" --overwrite --quiet
# All tasks run to the end together: the steady state is what plans predict.
sed -i -E 's/^( *)(steps|epochs):.*/\1steps: 16/' "$folder/workload.yaml"
inputs=(--workload "$folder/workload.yaml" --ranks 2)
"$braid" profile "${inputs[@]}" --out "$folder/profile.json" --overwrite --quiet | sed -n 1p >&2
for place in "${!policies[@]}"; do
  "$braid" plan "${inputs[@]}" --prefer speed --pp 2 --profile "$folder/profile.json" --policy "${policies[$place]}" \
    --out "$folder/plan$place.json" --overwrite >/dev/null
done
for round in $(seq "$rounds"); do
  for place in "${!policies[@]}"; do
    "$braid" train --plan "$folder/plan$place.json" --out "$folder/run" --overwrite --json \
      >"$folder/run-$place-$round.json" 2>/dev/null </dev/null
  done
done

echo "# scripts/policies.sh $rounds, $(date -u +%Y-%m-%d), $(grep -m1 'model name' /proc/cpuinfo | cut -d: -f2- | xargs), $(nproc) cores; a step of four tasks on two stages; the ratio of each round's pair"
python3 - "$folder" "$rounds" "${policies[@]}" <<'PY'
import json, statistics, sys
from pathlib import Path

folder, rounds, policies = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]
runs = [[json.loads((folder / f"run-{place}-{number}.json").read_text())["step_seconds"] for number in range(1, rounds + 1)]
        for place in range(len(policies))]
print(f"{'policy':38} {'predicted_ms':>12} {'measured_ms':>11} {'predicted':>9} {'measured':>8} {'least':>6} {'most':>6}")
for place, policy in enumerate(policies):
    pairs = sorted(mine["measured"] / base["measured"] for mine, base in zip(runs[place], runs[0]))
    predicted = runs[place][0]["predicted"] / runs[0][0]["predicted"]
    measured = statistics.median(run["measured"] for run in runs[place])
    print(f"{policy:38} {1e3 * runs[place][0]['predicted']:12.1f} {1e3 * measured:11.1f} {predicted:9.2f} "
          f"{statistics.median(pairs):8.2f} {pairs[0]:6.2f} {pairs[-1]:6.2f}")
PY
