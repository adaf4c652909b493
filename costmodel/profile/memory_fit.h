#pragma once

#include <optional>
#include <span>
#include <vector>

#include "base/units.h"

namespace braid::costmodel {

/// The memory of a task as it was measured: `batch` sequences of `length` tokens.
struct MemoryPoint {
  std::int64_t batch = 0;
  std::int64_t length = 0;
  Bytes bytes = 0;
};

/// bytes = base + linear · B · L + quadratic · B · L² (mLoRA §3.4, Eq. 5): what does not depend on the input, what each
/// token takes, and attention scores where they are kept. No term is negative.
struct MemoryFit {
  double base = 0;
  double linear = 0;
  double quadratic = 0;
  double mean_error = 0;  ///< mean |predicted − measured| / measured over the points
  double worst_error = 0;

  double bytes(std::int64_t batch, std::int64_t length) const;
};

/// Learns from measured points one after another, as tasks run.
class MemoryLearner {
 public:
  void add(const MemoryPoint& point) { points_.push_back(point); }
  /// Least squares of the relative error. Throws Error with fewer than three points.
  MemoryFit fit() const;

  /// The most bytes that `batch` sequences of `length` tokens can take, whichever coefficients Eq. 5 has: over all,
  /// none negative, that are within `error` (a share, under 1) of every point, their largest value there. Nothing with
  /// no point, and where no coefficients are so near to all; never less than the truth where Eq. 5 holds within
  /// `error`. Sharp from three points on that differ in B L and in B L²; of more than kShapes shapes the last count.
  /// `linear_factor`: how many times the points' β₁ the asked one may be.
  std::optional<double> most(std::int64_t batch, std::int64_t length, double error, double linear_factor = 1) const;
  static constexpr std::size_t kShapes = 12;

 private:
  std::vector<MemoryPoint> points_;
};

}  // namespace braid::costmodel
