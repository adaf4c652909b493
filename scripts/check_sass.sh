#!/usr/bin/env bash
# Holds what was compiled for GPUs to what it is meant to be: kernels of tensor cores multiply by them (HMMA), and they and
# the products in f32 keep what they work with in registers, none in local memory.
# usage: scripts/check_sass.sh LIBRARY [CUOBJDUMP]
set -euo pipefail
if [[ $# -lt 1 || $# -gt 2 || "$1" == -* ]]; then
  echo "usage: scripts/check_sass.sh LIBRARY [CUOBJDUMP]" >&2
  exit 2
fi
"${2:-cuobjdump}" -sass "$1" | awk '
  /Function :/ { function_name = $3; kernels[function_name] = 1 }
  / (HMMA|HGMMA)/ { products[function_name]++ }
  / (LDL|STL)/ { spills[function_name]++ }
  END {
    for (name in kernels) {
      of_tensor_cores = name ~ /tensor_(products|forward|dq|dkv)_kernel/
      if (!of_tensor_cores && name !~ /products_kernel/) continue
      if (spills[name]) { print name ": " spills[name] " accesses of local memory"; failed = 1 }
      if (!of_tensor_cores) continue
      checked++
      if (!products[name]) { print name ": no product of tensor cores"; failed = 1 }
      all += products[name]
    }
    if (!checked) { print "no kernel of tensor cores was found"; failed = 1 }
    printf "%d kernels of tensor cores, %d of their instructions, local memory in none\n", checked, all
    exit failed
  }'
