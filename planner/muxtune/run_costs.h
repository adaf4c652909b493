#pragma once

#include <memory>
#include <span>
#include <vector>

#include "planner/muxtune/htask_costs.h"
#include "planner/muxtune/task_fusion.h"
#include "planner/plan/policy.h"

namespace braid::planner {

/// What runs of neighbouring tasks cost as hTasks on the stages of a pipeline (MuxTune's Eq. 3), before samples are
/// laid out: in microbatches as large as alignment will make them.
///
/// With chunks each of the C parts of an hTask falls into as many microbatches as its packs have chunks; packs (and
/// chunks) that are larger than a part make fewer than C microbatches, and leave replicas without one. The ratio is the
/// run's `cut`, to the nearest power of two.
class RunCosts {
 public:
  /// `loads`: one part of each of `tasks`, in the order of the runs. `fixed` has the alignment.
  RunCosts(const PolicyInput& input, const FixedPlan& fixed, std::span<const costmodel::StageShape> stages,
           std::span<const TaskIndex> tasks, std::span<const costmodel::MicrobatchLoad> loads);

  /// Microbatches of the run for each of its C parts, and of all parts (at least one).
  double cut(const TaskRun& run) const { return cuts_[cut_places_[place(run)]]; }
  std::int64_t microbatches(const TaskRun& run) const { return microbatches_[cut_places_[place(run)]]; }

  /// One microbatch of the run.
  double forward_seconds(std::size_t stage, const TaskRun& run) const {
    return costs(stage).forward_seconds(run.first, run.last);
  }
  double backward_seconds(std::size_t stage, const TaskRun& run) const {
    return costs(stage).backward_seconds(run.first, run.last);
  }
  double seconds(std::size_t stage, const TaskRun& run) const { return costs(stage).seconds(run.first, run.last); }

 private:
  std::size_t place(const TaskRun& run) const {
    return static_cast<std::size_t>(run.first) * count_ + static_cast<std::size_t>(run.last);
  }
  const HTaskCosts& costs(std::size_t stage) const { return costs_[stage_places_[stage]]; }
  /// Packs are whole, so that the replica which has the most of them does more than the mean: by how much, of each run.
  void find_fullness(const PolicyInput& input, const FixedPlan& fixed, std::span<const TaskIndex> tasks,
                     std::span<const costmodel::MicrobatchLoad> loads);
  void find_cuts(const PolicyInput& input, const FixedPlan& fixed, std::span<const TaskIndex> tasks,
                 std::span<const costmodel::MicrobatchLoad> loads);

  std::size_t count_;
  std::int64_t parts_;
  std::vector<double> cuts_;                // those that runs have
  std::vector<std::int64_t> microbatches_;  // per cut
  std::vector<std::uint8_t> cut_places_;    // per run, into cuts_
  std::vector<double> fullness_;            // per run
  std::vector<std::size_t> stage_places_;   // per stage, of its shape among unlike ones
  std::vector<HTaskCosts> costs_;           // per unlike shape, each run at its cut
};

}  // namespace braid::planner
