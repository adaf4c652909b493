#include "base/statistics.h"

#include <algorithm>

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

}  // namespace braid
