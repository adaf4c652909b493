#!/usr/bin/env bash
# Trains adapters of every method on the golden backbones with braid, loads them with PEFT, or AdapterHub's library where
# that has the format, and compares the logits. Needs a build, and Pythons with what scripts/golden/requirements_5.txt
# and requirements_hub.txt list; without the second, bottleneck adapters are left out:
#   PYTHON=path/to/python HUB_PYTHON=path/to/python scripts/golden/check_adapters.sh
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
folder="$(mktemp -d)"
trap 'rm -rf "$folder"' EXIT
BRAID_KEEP_ADAPTERS="$folder" build/release/exec_tests --gtest_filter='*WritesAnAdapterForOthersToRead*' >/dev/null
check() { # python, script, case
  printf '%s: ' "$3"
  "$1" -W ignore "scripts/golden/$2" --backbone "tests/golden/$3" --adapter "$folder/$3" --logits "$folder/$3/logits.safetensors"
}
for case in llama llama3_rope qwen25 mistral qwen3 opt gpt2 dora dora_gpt2 vera ia3 prefix prefix_gpt2 shira; do
  check "${PYTHON:-python3}" check_adapter.py "$case"
done
if [[ -n "${HUB_PYTHON:-}" ]]; then check "$HUB_PYTHON" check_adapter_hub.py bottleneck; fi
