#!/usr/bin/env bash
# Holds the analytic model against figures measured elsewhere and writes the tables under results/costmodel.
# usage: scripts/costmodel.sh FOLDER   (with vidur_layer_ops.csv, vidur_collectives.csv, lobra_llama7b_a100_layer.csv and
# lobra_llama7b_max_tokens.csv: Vidur's and LobRA's published profiles, MIT licence and the LobRA repository)
set -euo pipefail
root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
reference="${1:?give the folder with the tables}"
study="$root/build/release/costmodel_study"

write() { # NAME TITLE WORDS...
  local file="$root/results/costmodel/$1.txt" title="$2"
  shift 2
  { echo "# scripts/costmodel.sh, costmodel_study ${*//"$reference/"/}: $title"; "$study" "$@"; } >"$file.new"
  mv "$file.new" "$file"
}
mkdir -p "$root/results/costmodel"
write operators "|predicted / measured - 1| on Vidur's operators" crossvalidate "$reference/vidur_layer_ops.csv"
write collectives "|predicted / measured - 1| on Vidur's collectives" crossvalidate "$reference/vidur_collectives.csv"
write layers "|predicted / measured - 1| on LobRA's layers" crossvalidate "$reference/lobra_llama7b_a100_layer.csv"
write capacities "LobRA's capacities" crossvalidate "$reference/lobra_llama7b_max_tokens.csv"
write papers "what the papers report of operators and memory" papers
