#!/usr/bin/env bash
# Installs what is missing, builds the release preset and runs every test. Prints ctest's summary last.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

scripts/install_deps.sh
# One kind of GPU here, as each takes half a minute; a build without this line is for all that BRAID_CUDA_ARCHITECTURES names.
cmake --preset release -DBRAID_CUDA_ARCHITECTURES="${BRAID_CUDA_ARCHITECTURES:-90a-real}"
cmake --build --preset release --parallel "${BRAID_JOBS:-$(nproc)}"
# Tests share the cores: a thread that waits must not spin.
OMP_WAIT_POLICY=passive ctest --preset release --parallel 2 --output-on-failure "$@"
