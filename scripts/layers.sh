#!/usr/bin/env bash
# What balanced layers gain over layers split evenly: four policies on four stages of A40s, for backbones whose heads are as
# much as two thirds of a layer and more. Prints a table; takes seconds, and times on this machine do not matter.
# usage: scripts/layers.sh >results/layers.txt
set -euo pipefail
root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
folder="$(mktemp -d)"
trap 'rm -rf "$folder"' EXIT

cat >"$folder/cluster.yaml" <<'YAML'
gpu: a40
nodes: 2
gpus_per_node: 2
intra_node: nvlink
inter_node: ib-100g
YAML
task() { # NAME MEAN MAX
  cat <<YAML
  - name: $1
    dataset: {lengths: {dist: lognormal, mean: $2, sigma: 0.4, max: $3}}
    max_length: $3
    adapter: {type: lora, r: 16, alpha: 32, target_modules: [q_proj, k_proj, v_proj, o_proj]}
    global_batch_size: 32
    steps: 50
    optimizer: {type: adamw, lr: 1e-4}
YAML
}
echo "# scripts/layers.sh: seconds of a step of two tasks on four stages, layers split evenly and balanced"
printf '%-14s %-14s %9s %9s %7s  %s\n' backbone policy even balanced less balanced
for backbone in llama2-7b gpt3-2.7b llama3.1-8b qwen2.5-32b; do
  { echo "backbone: $backbone" && echo "tasks:" && task short 60 128 && task long 120 256; } >"$folder/workload.yaml"
  for layers in even balanced; do
    "$root/build/release/braid" compare --workload "$folder/workload.yaml" --cluster "$folder/cluster.yaml" --tp 1 --pp 4 \
      --policy megatron-pp,gpipe,mlora,muxtune --layers "$layers" --json --quiet >"$folder/$layers.json"
  done
  python3 - "$backbone" "$folder/even.json" "$folder/balanced.json" <<'PY'
import json
import sys

backbone = sys.argv[1]
even, balanced = (json.load(open(file))["policies"] for file in sys.argv[2:])
for before, after in zip(even, balanced):
    if "error" in before or "error" in after:
        print(f"{backbone:14} {before['policy'].split(':')[0]:14} does not fit memory")
        continue
    times = [row["predicted"]["step_seconds"] for row in (before, after)]
    policy, split = after["policy"].split(":")[0], after["deployment"].partition(" of ")[2] or "even"
    print(f"{backbone:14} {policy:14} {times[0]:9.4f} {times[1]:9.4f} {1 - times[1] / times[0]:7.1%}  {split}")
PY
done
