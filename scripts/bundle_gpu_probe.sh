#!/usr/bin/env bash
# Puts gpu-probe and the library it needs into a folder that can be copied to a machine with a GPU.
# usage: scripts/bundle_gpu_probe.sh FOLDER
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

if [[ $# -ne 1 || "$1" == -* ]]; then
  echo "usage: scripts/bundle_gpu_probe.sh FOLDER" >&2
  exit 2
fi
program=build/release/gpu-probe
if [[ ! -x "$program" ]]; then
  echo "error: $program is missing; build the release preset where the CUDA toolkit is" >&2
  exit 1
fi
library="$(ldd "$program" | awk '$1 ~ /^libcublasLt/ && $3 ~ /^\// { print $3 }')"
if [[ -z "$library" ]]; then
  echo "error: no libcublasLt is found for $program; add its folder to LD_LIBRARY_PATH" >&2
  exit 1
fi
mkdir -p "$1"
cp --dereference "$program" "$library" "$1"
echo "bundled: $1/gpu-probe, $1/$(basename "$library"); run gpu-probe --out PROFILE there, the library beside it" >&2
