#pragma once

#include <optional>
#include <vector>

#include "sim/cluster/job.h"

namespace braid::sim {

/// What jobs ask for and a trace may not tell. Numbers are drawn evenly by (seed, row) alone.
struct DrawnTerms {
  struct Range {
    double least = 0, most = 0;
  };
  std::optional<Range> deadline_slack;  ///< from submission to deadline, over the recorded duration
  std::optional<Range> budget_slack;    ///< over the GPU time that a job has alone
  std::int32_t priorities = 0;          ///< how many there are: 0, 1, ...; 0 leaves them as they are

  bool any() const { return deadline_slack || budget_slack || priorities > 0; }
};
/// Deadlines and budgets for jobs that have none, and priorities.
void draw_terms(std::vector<ClusterJob>& jobs, const DrawnTerms& terms, std::uint64_t seed);

}  // namespace braid::sim
