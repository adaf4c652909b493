#pragma once

#include <optional>
#include <string>

#include "traces/trace.h"

namespace braid::traces {

struct Slice {
  double from_seconds = -std::numeric_limits<double>::infinity();  ///< submitted at or after
  double to_seconds = std::numeric_limits<double>::infinity();     ///< submitted before
  std::string virtual_cluster;                                     ///< of this one alone; empty: of any
  std::optional<std::int32_t> most_gpus;                           ///< no larger jobs
};

/// The jobs that a slice has, their times as they were. Throws Error when none is left, and for a virtual cluster that
/// the trace has not, which lists those it has.
Trace slice(const Trace& trace, const Slice& wanted);

/// Times between submissions (deadlines too) and durations multiplied; factors above 0.
Trace scale(const Trace& trace, double times, double durations);

/// Submissions drawn together or apart until offered_load(trace, gpus, gpus_of_each) is `load`.
Trace scale_to_load(const Trace& trace, double load, std::int64_t gpus, std::int32_t gpus_of_each = 0);

/// `count` jobs drawn with replacement, submitted in a Poisson process at `jobs_per_minute` (0: as many in a minute as
/// before). Deadlines keep their distance from the submission.
Trace resample(const Trace& trace, std::int64_t count, double jobs_per_minute, std::uint64_t seed);

}  // namespace braid::traces
