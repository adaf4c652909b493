#!/usr/bin/env bash
# From a fresh Debian 12 machine to four fine-tuned tasks, with the prediction held against the measurement.
# usage: scripts/quickstart.sh [FOLDER]   (default: quickstart/, made anew)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

scripts/install_deps.sh
cmake --preset release >/dev/null
cmake --build --preset release --target braid --parallel "$(nproc)" >/dev/null
braid=build/release/braid
folder="${1:-quickstart}"

say() { printf '\n== %s\n' "$*"; }

say "braid init: a tiny backbone, four datasets, a workload"
"$braid" init "$folder" --overwrite
# What plans use is measured at first use, and kept for the next time.
inputs=(--workload "$folder/workload.yaml" --profile-budget 20)
policy=megatron-pp:pad_to=none

say "braid compare: what each policy would do"
"$braid" compare "${inputs[@]}" --out "$folder/compare.json" --overwrite \
  --policy "hf-peft,megatron-pp,gpipe,sl-peft,mlora,muxtune,$policy,mlora:pad_to=none,muxtune:alignment=packed:pad_to=none"
"$braid" plan "${inputs[@]}" --policy "$policy" --out "$folder/plan.json" --overwrite >/dev/null

say "braid simulate: the plan to be run, replayed"
"$braid" simulate --plan "$folder/plan.json" --timeline-out "$folder/simulated.json" --overwrite

say "braid train: the same plan, executed"
"$braid" train --plan "$folder/plan.json" --out "$folder/run" --overwrite

say "braid validate: predicted beside measured"
"$braid" validate --plan "$folder/plan.json" --out "$folder/validation.json" --overwrite

say "braid report: all of it on one page"
"$braid" report "$folder" --title "braid: the quick start" --out "$folder/report.html" --overwrite

say "adapters: $folder/run/adapters   traces for ui.perfetto.dev: $folder/simulated.json, $folder/run/timeline.json"
