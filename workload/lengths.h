#pragma once

#include <cstdint>
#include <vector>

namespace braid::workload {

/// How long the samples of a dataset are, for planning without the data.
struct LengthDistribution {
  enum class Kind {
    lognormal,  ///< `mean` is the mean of the lengths, `sigma` the deviation of their logarithm
    constant,   ///< every length is `mean`
    uniform,    ///< whole numbers in [min, max]
  };

  Kind kind = Kind::lognormal;
  double mean = 0;
  double sigma = 0;
  std::int64_t min = 2;
  std::int64_t max = 0;  ///< lengths are rounded to whole tokens, then cut to [min, max]
  std::int64_t samples = 10000;

  bool operator==(const LengthDistribution&) const = default;
};

/// The sigma of a lognormal distribution with this skewness, above 0: papers tell the lengths of datasets by their mean
/// and skewness (LobRA, appendix).
double sigma_of_skewness(double skewness);

/// `lengths.samples` lengths in tokens; a pure function of both arguments.
std::vector<std::int64_t> draw_lengths(const LengthDistribution& lengths, std::uint64_t key);

}  // namespace braid::workload
