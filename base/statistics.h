#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace braid {

/// The middle of `samples`, or the mean of the two in the middle. There must be at least one.
double median(std::vector<double> samples);

/// The value below which `share` (0..1) of `samples` lie, the nearest one at or below. There must be at least one.
double quantile(std::vector<double> samples, double share);

/// A table of relative errors: its heading, and the line of `errors` (1 is 100 %) with their number, median and 95th
/// percentile. There must be at least one.
std::string error_table_heading();
std::string error_table_line(std::string_view what, const std::vector<double>& errors);

}  // namespace braid
