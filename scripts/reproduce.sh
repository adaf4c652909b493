#!/usr/bin/env bash
# Regenerates the figures of a paper from the planner's predictions, or MuxTune's cluster and the study of schedulers from
# simulations: results/NAME gets a table of each, a picture where matplotlib is installed, and claims.csv. The commands in
# the tables run in FOLDER, where their inputs are written. BRAID names another program than the build's, BRAID_TRACES the
# folder of public traces (scripts/fetch_traces.sh), without which `cluster` has the generated one alone.
# usage: scripts/reproduce.sh muxtune|mlora|cluster [FOLDER]   (default: a temporary one)
set -euo pipefail
root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"

if [[ $# -lt 1 || $# -gt 2 || ! "$1" =~ ^(muxtune|mlora|cluster)$ ]]; then
  echo "usage: scripts/reproduce.sh muxtune|mlora|cluster [FOLDER]" >&2
  exit 2
fi
export BRAID="${BRAID:-$root/build/release/braid}"
studies="$root/build/release"
for program in "$BRAID" "$studies"/{template,layout,lora_pipeline}_study; do
  if [[ ! -x "$program" ]]; then
    echo "error: $program is missing; build the release preset" >&2
    exit 1
  fi
done
python="$(command -v /usr/bin/python3 || command -v python3)"
folder="${2:-}"
if [[ -z "$folder" ]]; then
  folder="$(mktemp -d)"
  trap 'rm -rf "$folder"' EXIT
fi
results="$root/results/$1"
case "$1" in
  muxtune) tables=(template_study:template.txt layout_study:layouts.txt) ;;
  mlora) tables=(lora_pipeline_study:gpipe.txt) ;;
  cluster) tables=() ;;
esac
for table in "${tables[@]}"; do
  file="${table#*:}"
  "$studies/${table%:*}" >"$folder/$file"
  mv "$folder/$file" "$results/$file"
done
"$python" -B "$root/scripts/reproduce/$1.py" "$folder" "$results"
