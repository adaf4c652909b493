#pragma once

#include <map>
#include <tuple>

#include "planner/run_costs.h"

namespace braid::planner {

/// What clocks of buckets take by Eq. 3's latencies, before samples are laid out. Remembers collectives. Not for
/// concurrent use; all that it is given must outlive it.
class ClockSketch {
 public:
  /// `loads`: one part of each task, in the order of the runs.
  ClockSketch(const PolicyInput& input, std::span<const costmodel::StageShape> stages,
              std::span<const costmodel::MicrobatchLoad> loads, const RunCosts& costs);

  /// Of a bucket: hTasks with fewer microbatches than others stand in some of its clocks alone.
  std::int64_t clocks_of(std::span<const TaskRun> runs) const;

  /// A mean clock of a bucket: hTasks that have run out of microbatches leave the others to themselves.
  double seconds(std::size_t stage, std::span<const TaskRun> runs, costmodel::Pass pass);

 private:
  double together(std::size_t stage, std::span<const TaskRun> runs, costmodel::Pass pass);
  double collective_seconds(std::size_t stage, const TaskRun& run, costmodel::Pass pass);

  const PolicyInput& input_;
  std::span<const costmodel::StageShape> stages_;
  std::span<const costmodel::MicrobatchLoad> loads_;
  const RunCosts& costs_;
  std::vector<std::int32_t> ranks_;  // of the first stage
  double slowdown_ = 1;              // of computation beside a collective
  std::map<std::tuple<std::ptrdiff_t, std::int64_t, std::int64_t, costmodel::Pass>, double> collectives_;
};

}  // namespace braid::planner
