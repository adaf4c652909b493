#include "kernels/gpu_probe/summary.h"

#include <algorithm>

namespace braid::gpu_probe {

Summary summarize(std::vector<double> samples) {
  std::sort(samples.begin(), samples.end());
  // The nearest sample at or below, as in braid's own profiles.
  const auto quantile = [&](double share) {
    return samples[static_cast<std::size_t>(share * static_cast<double>(samples.size() - 1))];
  };
  const std::size_t middle = samples.size() / 2;
  const double median = samples.size() % 2 == 1 ? samples[middle] : (samples[middle - 1] + samples[middle]) / 2;
  return {median, median > 0 ? (quantile(0.75) - quantile(0.25)) / median : 0,
          static_cast<std::int64_t>(samples.size())};
}

}  // namespace braid::gpu_probe
