#pragma once

#include "planner/plan/policy.h"

namespace braid::planner {

/// Tasks in the order in which MuxTune fuses them, ascending by tokens (§3.3; ties in the workload's order), each with
/// the load of one part of its global batch.
struct SortedParts {
  std::vector<TaskIndex> tasks;
  std::vector<costmodel::MicrobatchLoad> loads;
};

/// `fixed` has the alignment. Where packs of all tasks are dealt out together, a part has in the mean what an even
/// split gives, whole rows or not.
SortedParts sorted_parts(const PolicyInput& input, const FixedPlan& fixed);

/// Which runs of neighbouring tasks fit memory as one hTask.
///
/// Eq. 5, corrected: one microbatch of the run on every stage beside all that is always held (without orchestration as
/// many as 1F1B has under way, for it knows no memory). More tasks never take less, so that it is asked for the longest
/// run of each first task alone, which never ends before the last one's.
class FittingRuns {
 public:
  FittingRuns(const PolicyInput& input, const costmodel::Storage& storage,
              std::span<const costmodel::StageShape> stages, std::span<const costmodel::MicrobatchLoad> loads,
              bool orchestrated);

  bool fits(std::int32_t first, std::int32_t last) const { return last <= longest_[static_cast<std::size_t>(first)]; }
  /// Every task by itself.
  bool fit_alone() const;

 private:
  std::vector<std::int32_t> longest_;  // per first task, the last one of its longest run that fits
};

}  // namespace braid::planner
