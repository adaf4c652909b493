#include "base/statistics.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.h"

namespace braid {

double median(std::vector<double> samples) {
  BRAID_CHECK(!samples.empty(), "the median of nothing");
  std::sort(samples.begin(), samples.end());
  const std::size_t middle = samples.size() / 2;
  return samples.size() % 2 == 1 ? samples[middle] : (samples[middle - 1] + samples[middle]) / 2;
}

double quantile(std::vector<double> samples, double share) {
  BRAID_CHECK(!samples.empty() && share >= 0 && share <= 1, "the {} quantile of {} samples", share, samples.size());
  std::sort(samples.begin(), samples.end());
  return samples[static_cast<std::size_t>(share * static_cast<double>(samples.size() - 1))];
}

std::string error_table_heading() {
  return fmt::format("  {:35} {:>7} {:>10} {:>10}\n", "", "points", "median", "95 %");
}

std::string error_table_line(std::string_view what, const std::vector<double>& errors) {
  return fmt::format("  {:35} {:>7} {:>8.1f} % {:>8.1f} %\n", what, errors.size(), 100 * median(errors),
                     100 * quantile(errors, 0.95));
}

}  // namespace braid
