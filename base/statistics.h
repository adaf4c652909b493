#pragma once

#include <vector>

namespace braid {

/// The middle of `samples`, or the mean of the two in the middle. There must be at least one.
double median(std::vector<double> samples);

/// The value below which `share` (0..1) of `samples` lie, the nearest one at or below. There must be at least one.
double quantile(std::vector<double> samples, double share);

}  // namespace braid
