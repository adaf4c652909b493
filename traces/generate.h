#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/units.h"
#include "traces/trace.h"

namespace braid::traces {

enum class DurationShape : std::uint8_t { lognormal, bounded_pareto };

/// What a trace without a trace looks like; the defaults are MuxTune §5.4's week.
struct Generator {
  std::int64_t jobs = 26107;
  double jobs_per_minute = 2.59;
  /// Deviation / mean of the times between submissions: 1 is a Poisson process, more comes in bursts (hyperexponential
  /// with balanced means). At least 1.
  double burstiness = 1;
  DurationShape duration = DurationShape::lognormal;
  double duration_mean_seconds = 372.6 * 60;
  double duration_deviation_seconds = 612.9 * 60;
  double longest_seconds = 60 * kDay;                              ///< where a bounded Pareto ends
  std::vector<std::pair<std::int32_t, double>> gpus = {{1, 1.0}};  ///< GPUs of a job, and how often (relative)
  std::int32_t virtual_clusters = 0;                               ///< jobs are spread evenly over them
  std::uint64_t seed = 1;
};

/// The same jobs for the same generator. Throws Error for what cannot be: no jobs, rates not above 0, a bounded Pareto
/// with a mean and deviation that none has.
Trace generate(const Generator& wanted);

/// The bounded Pareto on [least, longest] with tail index `alpha` that has this mean and deviation. Throws Error when
/// there is none.
struct BoundedPareto {
  double least = 0, longest = 0, alpha = 0;

  double quantile(double share) const;
  /// E[X^power].
  double moment(int power) const;
};
BoundedPareto bounded_pareto(double mean, double deviation, double longest);

}  // namespace braid::traces
