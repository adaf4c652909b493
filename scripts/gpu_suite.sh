#!/usr/bin/env bash
# All that is to be known of braid on this machine's GPU, in stages by their worth: each tells as it ends, so that a run cut
# short still tells. Runs in a folder of scripts/gpu_bundle.sh, or beside a release build.
# usage: gpu_suite.sh OUT [STAGE...]
set -uo pipefail
stages=(kernels models losses lora peft profile validate memory lora-f32 memcheck racecheck)
if [[ $# -lt 1 || "$1" == -* ]]; then
  echo "usage: gpu_suite.sh OUT [STAGE...]; left out, all stages: ${stages[*]}" >&2
  exit 2
fi
out="$(realpath -m "$1")"
shift
for name in "$@"; do
  if [[ " ${stages[*]} " != *" $name "* ]]; then
    echo "error: no stage is called $name; there are: ${stages[*]}" >&2
    exit 2
  fi
done
wanted=" ${*:-${stages[*]}} "
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
mkdir -p "$out"
# CUDA's libraries are the machine's: its toolkit's, or those that PyTorch was installed with.
cuda=/usr/local/cuda/lib64:$(python3 -c 'import nvidia
print(*(f"{path}/{part}/lib" for path in nvidia.__path__ for part in ("cu13", "cudnn")), sep=":")' 2>/dev/null)
if [[ -x "$here/braid" ]]; then
  programs="$here" libraries="$here/lib:$cuda"
  export BRAID_GOLDEN="$here/golden"
else
  programs="$here/../build/release" libraries="$cuda"
fi
if [[ ! -f "$programs/libbraid_cuda.so" ]]; then
  echo "error: there is no $programs/libbraid_cuda.so; build where CUDA 13 with nvcc is installed" >&2
  exit 1
fi
libraries="$libraries:${LD_LIBRARY_PATH:-}"
if LD_LIBRARY_PATH="$libraries" ldd "$programs/libbraid_cuda.so" | grep "not found" >&2; then
  echo "error: libbraid_cuda.so lacks these; name their folder in LD_LIBRARY_PATH" >&2
  exit 1
fi
# Ours find their libraries, and PyTorch finds its own.
ours="$(mktemp -d)"
for program in braid kernels_tests exec_tests gpu_benchmark; do
  printf '#!/bin/sh\nLD_LIBRARY_PATH=%q exec %q "$@"\n' "$libraries" "$programs/$program" >"$ours/$program"
  chmod +x "$ours/$program"
done
programs="$ours"
export BRAID_GPU=1  # tests that find none fail
nvidia-smi --query-gpu=name,driver_version,memory.total,clocks.max.sm --format=csv,noheader | tee "$out/machine.txt"
failed=0

stage() { # name, seconds, command
  local name="$1" limit="$2" began=$SECONDS
  shift 2
  [[ "$wanted" == *" $name "* ]] || return 0
  timeout "$limit" "$@" >"$out/$name.txt" 2>&1
  local status=$?
  printf '%-12s %s in %d s: %s\n' "$name" "$([[ $status -eq 0 ]] && echo ok || echo "FAILED ($status)")" \
    $((SECONDS - began)) "$(tail -n 1 "$out/$name.txt")" | tee -a "$out/summary.txt"
  [[ $status -eq 0 ]] || failed=1
}

train() { # backend
  "$programs/braid" train --quiet --workload "$example/workload.yaml" --ranks 1 --profile-budget 5 --backend "$1" \
    --out "$out/train-$1" --overwrite
}
train_by() { # kernels
  "$programs/braid" profile --quiet --workload "$example/workload.yaml" --ranks 1 --profile-budget 5 --backend cuda \
    --kernels "$1" --out "$out/profile-$1.json" --overwrite &&
    "$programs/braid" train --quiet --workload "$example/workload.yaml" --ranks 1 --backend cuda \
      --profile "$out/profile-$1.json" --out "$out/train-$1" --overwrite
}

# Losses of the four-task quick start, step by step: f32 within 1e-4 of the processor's.
losses() {
  export example="$out/example"
  rm -rf "$example"
  "$programs/braid" init "$example" && train cpu && train cuda-f32 && train cuda || return 1
  # Joined products are for H100 and H200 alone, and cuDNN may not be there.
  for kernels in plain joined cudnn graphs; do
    train_by "$kernels" || echo "nothing is trained with --kernels $kernels here"
  done
  python3 - "$out" <<'PYTHON'
import json, sys, pathlib
out = pathlib.Path(sys.argv[1])
def read(backend):
    lines = (out / f"train-{backend}" / "metrics.jsonl").read_text().splitlines()
    return {(line["task"], line["step"]): line["loss"] for line in map(json.loads, lines)}
cpu = read("cpu")
worst = {}
for backend in ("cuda-f32", "cuda", "plain", "joined", "cudnn", "graphs"):
    if not (out / f"train-{backend}" / "metrics.jsonl").exists():
        continue
    gpu = read(backend)
    assert gpu.keys() == cpu.keys(), f"{backend} took other steps"
    worst[backend] = max(abs(gpu[key] / cpu[key] - 1) for key in cpu)
print(", ".join(f"{backend}: losses within {value:.2e} of the processor's" for backend, value in worst.items()))
if "graphs" in worst and read("graphs") != read("plain"):
    sys.exit("layers that are launched as graphs learn otherwise than those that are not")
sys.exit(worst["cuda-f32"] > 1e-4)
PYTHON
}

stage kernels 90 "$programs/kernels_tests" --gtest_filter='All/Devices.*/cuda_1:All/Devices.*/cuda_2:All/Devices.*/cuda_3:All/Devices.*/cuda_4:All/Devices.*/cuda_f32_*:All/Devices.*/cuda_graphs_*:All/SecondKernels.*/cuda_second_*'
stage models 120 "$programs/exec_tests" --gtest_filter='*Cuda*_on_gpu'
export -f losses train train_by
export programs out
stage losses 240 bash -c losses
stage lora 120 "$programs/gpu_benchmark" cuda
# Whole models beside PyTorch and PEFT.
stage peft 300 python3 "$here/bench_vs_peft.py" --device cuda --braid "$programs/braid" --rounds 1
# What the quick start's plan takes of time and memory, beside what its profile, measured here, predicts.
profile() {
  [[ -d "$example" ]] || "$programs/braid" init "$example" || return 1
  "$programs/braid" profile --quiet --workload "$example/workload.yaml" --backend cuda --ranks 1 --profile-budget 30 \
    --policy braid --out "$out/profile.json" --overwrite
}
validate() {
  "$programs/braid" plan --quiet --workload "$example/workload.yaml" --backend cuda --ranks 1 --profile "$out/profile.json" \
    --policy "$1" --out "$out/plan-$1.json" --overwrite >/dev/null &&
    "$programs/braid" validate --quiet --plan "$out/plan-$1.json" --budget 10 --operators --out "$out/validate-$1.json" --overwrite
}
validate_all() {
  local failed=0
  [[ -f "$out/profile.json" ]] || profile || return 1
  for policy in braid muxtune lorafusion mlora hf-peft megatron-pp nemo sl-peft lobra gpipe; do
    echo "== $policy"
    validate "$policy" || failed=1
  done
  return $failed
}
export example="$out/example"
export -f profile validate validate_all
stage profile 90 bash -c profile
stage validate 240 bash -c validate_all
# What the kernels of one task's LoRA move through the GPU's memory, beside the least there is, and which they are: those of
# cuBLASLt for Hopper's tensor cores (HGMMA) are called nvjet or gmma.
memory() {
  ncu --csv --clock-control none --cache-control none --print-units base --target-processes all --metrics dram__bytes_read.sum,dram__bytes_write.sum,gpu__time_duration.sum --launch-count 400 \
    "$programs/gpu_benchmark" cuda 8192 4096 0 >"$out/ncu.csv" || return 1
  python3 - "$out/ncu.csv" <<'PYTHON'
import collections, csv, sys
lines = [line for line in open(sys.argv[1]) if line.startswith('"')]
scale = {"byte": 1, "Kbyte": 1e3, "Mbyte": 1e6, "Gbyte": 1e9, "ns": 1e-9, "us": 1e-6, "ms": 1e-3, "nsecond": 1e-9, "usecond": 1e-6, "msecond": 1e-3}
launches = collections.OrderedDict()
for row in csv.DictReader(lines):
    launch = launches.setdefault(row["ID"], {"name": row["Kernel Name"][:60]})
    launch[row["Metric Name"]] = float(row["Metric Value"].replace(",", "")) * scale[row["Metric Unit"]]
least = 2 * (2 * 8192 * 4096 + 4096 * 4096)
for launch in launches.values():
    moved = launch["dram__bytes_read.sum"] + launch["dram__bytes_write.sum"]
    print(f"{launch['name']:<60} {moved / 1e6:9.1f} MB {launch['gpu__time_duration.sum'] * 1e6:9.1f} us")
print(f"X, W and Y once are {least / 1e6:.1f} MB")
PYTHON
}
export -f memory
command -v ncu >/dev/null && stage memory 120 bash -c memory
stage lora-f32 60 "$programs/gpu_benchmark" cuda-f32 8192 4096
if command -v compute-sanitizer >/dev/null; then
  # Of our kernels alone: libraries' synchronize in ways that it does not know.
  for tool in memcheck racecheck; do
    stage "$tool" 120 compute-sanitizer --tool "$tool" --kernel-name kns=braid --target-processes all --error-exitcode 9 \
      "$programs/kernels_tests" --gtest_filter='All/Devices.*/cuda_1'
  done
fi
exit $failed
