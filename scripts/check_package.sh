#!/usr/bin/env bash
# Builds the Debian package, installs it on a Debian 12 with nothing else on it (debootstrap; as root, with a network), and
# runs a plan there with the kernels of each level of x86-64 that this processor has. Prints what each trained.
# usage: scripts/check_package.sh [FOLDER]   (of that Debian, kept; build/debian)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
root="$(realpath -m "${1:-build/debian}")"
if [[ $EUID -ne 0 ]] || ! command -v debootstrap >/dev/null; then
  echo "error: this wants root and debootstrap: apt-get install debootstrap" >&2
  exit 2
fi
cmake --preset portable >/dev/null
targets=(braid braid_manual)
# Where there is a CUDA toolkit.
if cmake --build --preset portable --target help | grep "^braid_cuda:" >/dev/null; then targets+=(braid_cuda); fi
cmake --build --preset portable --target "${targets[@]}" >&2
(cd build/portable && cpack -G DEB >&2)
[[ -e "$root/etc/debian_version" ]] || debootstrap --variant=minbase bookworm "$root" >&2
rm -f "$root"/tmp/*.deb
cp build/portable/braid-peft_*.deb "$root/tmp/"
# What a package asks for is what its install brings, and no recommendation of others.
chroot "$root" sh -c 'apt-get update -q && apt-get install -q -y --no-install-recommends /tmp/braid-peft_*.deb' >&2
# Processes there see what they are and hold in /proc, which goes with the mounts of this one command.
unshare --mount sh -euc 'mount --rbind /proc "$1/proc"; exec chroot "$1" sh -euc "$2"' sh "$root" '
  cd /tmp
  rm -rf example plan.json run-* report.html
  export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 LC_ALL=C.UTF-8
  braid init example
  for without in "" -AVX512F,-AVX512VL -AVX512F,-AVX512VL,-AVX2; do
    export GLIBC_TUNABLES="glibc.cpu.hwcaps=$without"
    lanes="$(braid --version | sed -n "s/.*kernels \([0-9]*\) lanes.*/\1/p")"
    braid plan --workload example/workload.yaml --ranks 2 --policy megatron-pp:pad_to=none --quiet --out plan.json --overwrite
    braid train --plan plan.json --quiet --out "run-$lanes"
    echo "trained with kernels $lanes lanes wide"
  done
  braid report plan.json run-* --out report.html'
