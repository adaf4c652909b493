#!/usr/bin/env bash
# Installs what building and testing braid needs on Debian 12, where it may; else says what to install. Idempotent.
# usage: scripts/install_deps.sh [--browser]   (--browser: and what scripts/check_page.py looks at pages with)
set -euo pipefail

packages=(
  build-essential cmake ninja-build pkg-config ccache
  libboost-graph-dev libboost-program-options-dev libboost-context-dev libfmt-dev libyaml-cpp-dev nlohmann-json3-dev
  coinor-libcbc-dev libxxhash-dev libpcre2-dev libicu-dev libnlopt-dev libeigen3-dev libsentencepiece-dev libdnnl-dev libopenmpi-dev
  openmpi-bin
  libgtest-dev librapidcheck-dev libbenchmark-dev python3-simpy3 python3-jsonschema
)

[[ "${1:-}" != --browser ]] || packages+=(chromium fonts-dejavu-core)

missing=()
for package in "${packages[@]}"; do
  [[ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)" == installed ]] || missing+=("$package")
done
if [[ ${#missing[@]} -eq 0 ]]; then
  echo "install_deps: everything is installed" >&2
  exit 0
fi

if ! command -v apt-get >/dev/null; then
  echo "error: no apt-get here; install the equivalents of these Debian packages: ${missing[*]}" >&2
  exit 2
fi
elevate=()
if [[ $EUID -ne 0 ]]; then
  if command -v sudo >/dev/null && sudo -n true 2>/dev/null; then
    elevate=(sudo)
  else
    echo "error: packages are missing and this user may not install them; run: sudo apt-get install ${missing[*]}" >&2
    exit 2
  fi
fi
echo "install_deps: installing ${missing[*]}" >&2
export DEBIAN_FRONTEND=noninteractive
"${elevate[@]}" apt-get update -qq
"${elevate[@]}" apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
