#!/usr/bin/env bash
# Holds what was compiled for GPUs to what it is meant to be: kernels of tensor cores multiply by them (HMMA), those of
# sm_90a's warpgroups by HGMMA on what its copy engine brings (UTMALDG), and they and the products in f32 keep what they work
# with in registers, none in local memory.
# usage: scripts/check_sass.sh LIBRARY [CUOBJDUMP]
set -euo pipefail
if [[ $# -lt 1 || $# -gt 2 || "$1" == -* ]]; then
  echo "usage: scripts/check_sass.sh LIBRARY [CUOBJDUMP]" >&2
  exit 2
fi
"${2:-cuobjdump}" -sass "$1" | awk '
  /^arch =/ { arch = $3 }
  /Function :/ { function_name = $3 " of " arch; kernels[function_name] = 1 }
  / HMMA/ { products[function_name]++ }
  / HGMMA/ { warpgroups[function_name]++ }
  / UTMALDG/ { boxes[function_name]++ }
  / (LDL|STL)/ { spills[function_name]++ }
  END {
    for (name in kernels) {
      of_warpgroups = name ~ /joined_kernel.* of sm_90a$/
      of_tensor_cores = of_warpgroups || name ~ /tensor_(products|forward|dq|dkv)_kernel/
      if (!of_tensor_cores && name !~ /products_kernel/) continue
      if (spills[name]) { print name ": " spills[name] " accesses of local memory"; failed = 1 }
      if (!of_tensor_cores) continue
      checked++
      if (!products[name]) { print name ": no product of tensor cores"; failed = 1 }
      if (of_warpgroups && (!warpgroups[name] || !boxes[name])) { print name ": no HGMMA, or no copy of boxes"; failed = 1 }
      all += products[name]
      large += warpgroups[name]
    }
    if (!checked) { print "no kernel of tensor cores was found"; failed = 1 }
    printf "%d kernels of tensor cores, %d HMMA and %d HGMMA, local memory in none\n", checked, all, large
    exit failed
  }'
