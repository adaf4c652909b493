#pragma once

#include "kernels/cpu/lanes.h"

namespace braid::kernels::cpu {

/// Σ term(i, count) over a row, in four sums, as one would wait for itself.
template <typename Term>
float sum_lanes(std::int64_t columns, const Term& term) {
  Lanes sums[4] = {};
  for_lanes(columns, [&](std::int64_t i, std::int64_t count) { sums[i / kLanes % 4] += term(i, count); });
  return sum((sums[0] + sums[1]) + (sums[2] + sums[3]));
}

}  // namespace braid::kernels::cpu
