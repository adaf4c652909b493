#pragma once

#include <span>
#include <vector>

namespace braid::costmodel {

/// The sequence that never falls and has the least sum of squared relative errors ((y − x) / x)² from `values`, all
/// above 0 (those that are not count as nearly 0): pool adjacent violators (Barlow et al. 1972). O(n).
std::vector<double> isotonic(std::span<const double> values);

}  // namespace braid::costmodel
