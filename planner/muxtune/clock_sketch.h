#pragma once

#include <map>
#include <tuple>

#include "planner/muxtune/run_costs.h"

namespace braid::planner {

/// What clocks of buckets take by Eq. 3's latencies, before samples are laid out. Remembers collectives. Not for
/// concurrent use; all that it is given must outlive it.
class ClockSketch {
 public:
  /// `loads`: one part of each task, in the order of the runs.
  ClockSketch(const PolicyInput& input, std::span<const costmodel::StageShape> stages,
              std::span<const costmodel::MicrobatchLoad> loads, const RunCosts& costs);

  /// Stages alike have the number of the first of them.
  std::size_t first_alike(std::size_t stage) const { return first_alike_[stage]; }

  /// Of a bucket: hTasks with fewer microbatches than others stand in some of its clocks alone. Puts the runs in the
  /// order in which they leave, the first one last.
  std::int64_t clocks_of(std::vector<TaskRun>& runs) const;

  /// A mean clock of a bucket, its runs in that order: those that have run out of microbatches leave the others to
  /// themselves.
  double seconds(std::size_t stage, std::span<const TaskRun> runs, costmodel::Pass pass);

 private:
  double together(std::size_t stage, std::span<const TaskRun> runs, costmodel::Pass pass);
  double collective_seconds(std::size_t stage, const TaskRun& run, costmodel::Pass pass);

  const PolicyInput& input_;
  std::span<const costmodel::StageShape> stages_;
  std::vector<std::size_t> first_alike_;  // per stage
  const RunCosts& costs_;
  std::vector<std::int64_t> tokens_before_, scored_before_;  // per task, of those before it
  std::vector<std::int32_t> ranks_;                          // of the first stage
  double slowdown_ = 1;                                      // of computation beside a collective
  std::map<std::tuple<std::size_t, std::int64_t, std::int64_t, costmodel::Pass>, double> collectives_;
};

}  // namespace braid::planner
