#!/usr/bin/env bash
# Regenerates the figures of papers from the planner's predictions, and studies of clusters from simulations: all of a
# paper's, or one. --help says how, --list what there is.
# usage: scripts/reproduce.sh NAME...   (such as: muxtune, or mlora.fig14)
set -euo pipefail
scripts="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
python="$(command -v /usr/bin/python3 || command -v python3)"
PYTHONPATH="$scripts" exec "$python" -B -m reproduce "$@"
