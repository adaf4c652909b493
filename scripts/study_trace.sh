#!/usr/bin/env bash
# Every scheduler with every way to share on a trace of one's own, at loads of 0.7 to 1.1: RESULTS gets schedulers.csv,
# winners.csv and a picture. Takes minutes for thousands of jobs. BRAID names another program than the build's.
# usage: scripts/study_trace.sh TRACE RESULTS [GPUS]   (default: 128)
set -euo pipefail
scripts="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"

if [[ $# -lt 2 || $# -gt 3 || ! "${3:-128}" =~ ^[1-9][0-9]*$ ]]; then
  echo "usage: scripts/study_trace.sh TRACE RESULTS [GPUS]" >&2
  exit 2
fi
if [[ ! -r "$1" ]]; then
  echo "error: $1 cannot be read; give a trace of jobs" >&2
  exit 2
fi
python="$(command -v /usr/bin/python3 || command -v python3)"
PYTHONPATH="$scripts" exec "$python" -B -m reproduce.cluster.own_trace "$1" "$2" "${3:-128}"
