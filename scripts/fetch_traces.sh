#!/usr/bin/env bash
# Says where the public traces of GPU clusters are, and checks those that were downloaded into FOLDER: by their hash where
# one is known, and by reading them. Downloads nothing by itself: most are large, and each has terms of its own.
# usage: scripts/fetch_traces.sh [FOLDER]
set -euo pipefail
root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
braid="${BRAID:-$root/build/release/braid}"

# file | SHA-256, where it is known | what and where
traces=(
  "cluster_job_log||Microsoft Philly 2017, as published: trace-data.tar.gz of https://github.com/msr-fiddle/philly-traces (CC-BY-4.0)"
  "philly.csv|ebffb3dd1589bdf4e7bcd74496201c5ded1d557d498ee14f560463f37ec353da|Microsoft Philly 2017 as CSV: https://github.com/pkusys/ElasticFlow"
  "itp_cluster02.csv|7a5849e73aff9f9bc33f87c9bacadf8aab2f3a9e7bc5d70956f5cbf40126526c|Microsoft ITP 2021: https://github.com/microsoft/elasticflow-traces (MIT)"
  "itp_cluster05.csv|1553359ddd673a0ffc531ca10e73ba729dbacbce905ce878dbb8499d2dbed0fb|Microsoft ITP 2021: https://github.com/microsoft/elasticflow-traces (MIT)"
  "cluster_log.csv||SenseTime Helios 2020, one a cluster: https://github.com/S-Lab-System-Group/HeliosData (CC-BY-4.0)"
  "pai_task_table.csv||Alibaba PAI 2020: cluster-trace-gpu-v2020 of https://github.com/alibaba/clusterdata"
  "openb_pod_list_default.csv||Alibaba 2023: cluster-trace-gpu-v2023 of https://github.com/alibaba/clusterdata"
  "trace_seren.csv||Shanghai AI Lab Acme 2023: https://github.com/InternLM/AcmeTrace (CC-BY-4.0)"
  "trace_kalos.csv||Shanghai AI Lab Acme 2023: https://github.com/InternLM/AcmeTrace (CC-BY-4.0)"
)

if [[ $# -gt 1 || "${1:-}" == -* ]]; then
  echo "usage: scripts/fetch_traces.sh [FOLDER]" >&2
  exit 2
fi
folder="${1:-}"
if [[ -n "$folder" && ! -d "$folder" ]]; then
  echo "error: $folder is no folder; make it and put what you download there" >&2
  exit 2
fi
if [[ -n "$folder" && ! -x "$braid" ]]; then
  echo "error: $braid is missing; build the release preset" >&2
  exit 1
fi
status=0
for trace in "${traces[@]}"; do
  IFS='|' read -r file hash what <<<"$trace"
  printf '%-27s %s\n' "$file" "$what"
  [[ -n "$folder" && -e "$folder/$file" ]] || continue
  if [[ -n "$hash" && "$(sha256sum "$folder/$file" | cut -d' ' -f1)" != "$hash" ]]; then
    echo "  is not the file that results were made with: another SHA-256 than $hash"
    status=1
  fi
  if jobs="$("$braid" trace stats "$folder/$file" 2>&1)"; then
    grep -E '^(jobs|span|duration)' <<<"$jobs" | sed 's/^/  /'
  else
    echo "  $jobs"
    status=1
  fi
done
exit $status
