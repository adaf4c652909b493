#!/usr/bin/env bash
# Trains adapters on the golden backbones with braid, loads them with PEFT and compares the logits. Needs a build, and a
# Python with what scripts/golden/requirements.txt lists: PYTHON=path/to/python scripts/golden/check_adapters.sh
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
folder="$(mktemp -d)"
trap 'rm -rf "$folder"' EXIT
BRAID_KEEP_ADAPTERS="$folder" build/release/exec_tests --gtest_filter='*WritesAnAdapterForPeftToRead*' >/dev/null
for case in llama llama3_rope qwen25; do
  printf '%s: ' "$case"
  "${PYTHON:-python3}" scripts/golden/check_adapter.py --backbone "tests/golden/$case" --adapter "$folder/$case" --logits "$folder/$case/logits.safetensors"
done
