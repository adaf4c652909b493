#!/usr/bin/env bash
# Installs what is missing, builds the release preset and runs every test. Prints ctest's summary last.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

scripts/install_deps.sh
cmake --preset release
cmake --build --preset release --parallel "${BRAID_JOBS:-$(nproc)}"
# Tests share the cores: a thread that waits must not spin.
OMP_WAIT_POLICY=passive ctest --preset release --parallel 2 --output-on-failure "$@"
