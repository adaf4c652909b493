#include "workload/lengths.h"

#include <algorithm>
#include <cmath>

#include "base/random.h"

namespace braid::workload {
namespace {

/// Cut while still a double: a wild draw of a wide distribution may not fit an integer.
std::int64_t whole_tokens(const LengthDistribution& lengths, double length) {
  return std::llround(std::clamp(length, static_cast<double>(lengths.min), static_cast<double>(lengths.max)));
}

}  // namespace

double sigma_of_skewness(double skewness) {
  // (w + 2) sqrt(w - 1) with w = exp(sigma²) grows with sigma.
  double least = 0, most = 1;
  const auto skewed = [](double sigma) {
    const double more = std::expm1(sigma * sigma);
    return (more + 3) * std::sqrt(more);
  };
  while (skewed(most) < skewness) most *= 2;
  constexpr int kHalvings = 60;
  for (int i = 0; i < kHalvings; ++i) {
    const double middle = (least + most) / 2;
    (skewed(middle) < skewness ? least : most) = middle;
  }
  return most;
}

std::vector<std::int64_t> draw_lengths(const LengthDistribution& lengths, std::uint64_t key) {
  RandomStream random(key);
  std::vector<std::int64_t> drawn(static_cast<std::size_t>(lengths.samples));
  for (std::int64_t& length : drawn) {
    switch (lengths.kind) {
      case LengthDistribution::Kind::lognormal: {
        // E[exp(m + s z)] = exp(m + s²/2).
        const double location = std::log(lengths.mean) - lengths.sigma * lengths.sigma / 2;
        length = whole_tokens(lengths, std::exp(location + lengths.sigma * random.next_normal()));
        break;
      }
      case LengthDistribution::Kind::constant:
        length = whole_tokens(lengths, lengths.mean);
        break;
      case LengthDistribution::Kind::uniform:
        length = lengths.min + static_cast<std::int64_t>(
                                   random.next_below(static_cast<std::uint64_t>(lengths.max - lengths.min + 1)));
        break;
    }
  }
  return drawn;
}

}  // namespace braid::workload
