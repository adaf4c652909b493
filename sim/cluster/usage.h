#pragma once

#include <vector>

namespace braid::sim {

/// A cluster over time: means over bins of equal length, the first from the first submission on.
struct Usage {
  struct Bin {
    double gpus = 0;     ///< allocated
    double running = 0;  ///< jobs
    double waiting = 0;
    double tokens = 0;  ///< billed in this bin, not a mean
  };

  double bin_seconds = 0;
  double first_seconds = 0;  ///< where the first bin begins
  double last_seconds = 0;   ///< where the last bin ends: its mean is over what there is of it
  std::vector<Bin> bins;
};

/// From the first to the last moment at which every GPU is allocated.
struct SaturatedSpan {
  double from_seconds = 0, to_seconds = 0;
  double tokens = 0;  ///< billed meanwhile
  double tokens_per_second() const { return to_seconds > from_seconds ? tokens / (to_seconds - from_seconds) : 0; }
};

/// Adds up what stays the same between two moments.
class UsageMeter {
 public:
  UsageMeter(double first_seconds, double bin_seconds);

  /// Until `to`, with so many GPUs allocated, jobs running and waiting, and `tokens` billed. Throws Error for a run of
  /// more than a century's bins.
  void add(double to, double gpus, double running, double waiting, double tokens);
  /// Sums become means; nothing may have been added after `end` but zeros.
  Usage finish(double end);

 private:
  Usage usage_;
};

}  // namespace braid::sim
