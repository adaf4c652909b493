#!/usr/bin/env bash
# Builds for any x86-64 processor, and packs what scripts/gpu_suite.sh runs on a machine with a GPU and CUDA 13 and nothing
# of ours: the program, its tests and benchmark, the device of GPUs, golden files, and the shared libraries that such a
# machine may lack. CUDA's own libraries stay behind. FOLDER.tar.xz is the same in a third of the space.
# usage: scripts/gpu_bundle.sh FOLDER [ARCHITECTURES, such as 90a-real or 86-real;90a-real]
set -euo pipefail
if [[ $# -lt 1 || $# -gt 2 || "$1" == -* ]]; then
  echo "usage: scripts/gpu_bundle.sh FOLDER [ARCHITECTURES]" >&2
  exit 2
fi
folder="$(realpath -m "$1")"
cd "$(dirname "${BASH_SOURCE[0]}")/.."
programs=(braid kernels_tests exec_tests gpu_benchmark)
cmake --preset portable -DBRAID_CUDA_ARCHITECTURES="${2:-90a-real}" >/dev/null
cmake --build --preset portable --target "${programs[@]}" braid_cuda >&2
if [[ ! -f build/portable/libbraid_cuda.so ]]; then
  echo "error: no libbraid_cuda.so was built; install CUDA 13 with nvcc and cuBLASLt" >&2
  exit 1
fi
rm -rf "$folder"
mkdir -p "$folder/lib"
for program in "${programs[@]}"; do strip -o "$folder/$program" "build/portable/$program"; done
strip --strip-unneeded -o "$folder/libbraid_cuda.so" build/portable/libbraid_cuda.so
# Not the C library's, which belong to the machine.
for program in "${programs[@]}"; do ldd "build/portable/$program"; done |
  awk '$3 ~ /^\// { print $3 }' | sort -u | grep -vE '/(libc|libm|libdl|librt|libpthread|libresolv|libnss[^/]*|ld-linux[^/]*)\.so' |
  grep -v libbraid_cpu | while read -r library; do cp --dereference "$library" "$folder/lib/"; done
# The processor's kernels, of which the loader takes the best that the machine runs.
cp -r build/portable/lib/. "$folder/lib/"
cp -r tests/golden "$folder/golden"
cp scripts/gpu_suite.sh scripts/bench_vs_peft.py "$folder/"
tar -C "$(dirname "$folder")" -cf - "$(basename "$folder")" | xz -T0 -3 >"$folder.tar.xz"
du -sh "$folder" "$folder.tar.xz" >&2
echo "bundled: unpack it on a machine with a GPU, and run gpu_suite.sh OUT in it" >&2
