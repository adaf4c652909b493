#pragma once

#include "planner/estimator/layouts.h"
#include "planner/estimator/step_estimator.h"
#include "planner/estimator/task_counts.h"
#include "planner/muxtune/laid_out_bucket.h"
#include "planner/search/bench.h"

namespace braid::planner {

/// Of a policy that is given its deployments.
///
/// Each kind of task by itself, and a few sets of several, are planned; the deployments and numbers of microbatches
/// that those plans chose are all that other sets are tried on. A policy's sketch (MuxTune's: Eq. 3 and the template)
/// says which of them; there the set is arranged, few layouts laid out, and one step of it told. All samples of a task
/// have its mean length; where nothing is padded several steps are told, of samples as they are drawn. `replayed` tells
/// how far off that is.
class LearnedEstimator final : public StepEstimator {
 public:
  LearnedEstimator(const PlanningInput& input, const PolicyChoice& choice, std::int32_t most_tasks,
                   std::shared_ptr<Layouts> layouts);

  std::optional<StepEstimate> estimate(std::span<const std::int32_t> counts) override;
  double replayed(std::span<const std::int32_t> counts) override;

 private:
  /// A deployment with a number of microbatches.
  struct Candidate {
    std::vector<ReplicaShape> deployment;
    std::int64_t microbatches = 1;
    bool operator==(const Candidate&) const = default;
  };
  struct Laid {
    FixedPlan fixed;
    StepEstimate step;
  };

  void learn_from(const Plan& plan);
  void learn_splits(Candidate candidate);
  std::optional<Laid> lay(const CountedTasks& tasks);
  std::optional<Laid> lay(const CountedTasks& tasks, const Candidate& candidate);
  /// Those with about the least sketch, the least first; none where none may fit, or the policy does not sketch.
  std::vector<const Candidate*> best_sketches(const CountedTasks& tasks, std::int64_t most_samples);
  /// Candidates that may fit, ascending by what the policy sketches of a step; 0 where it does not sketch.
  std::vector<std::pair<double, const Candidate*>> sketches(const CountedTasks& tasks, std::int64_t most_samples);
  PolicyInput policy_input(const CountedTasks& tasks, const Candidate& candidate);
  /// Of several steps, samples as they are drawn.
  Prediction replay_of(const FixedPlan& fixed, std::span<const std::int32_t> counts);

  PlanningInput input_;
  PolicyChoice choice_;
  Bench bench_;
  std::vector<Candidate> candidates_;     // those of plans, then those for where nothing else fits
  std::size_t learned_ = 0;               // of plans
  std::vector<LaidOutBuckets> laid_out_;  // per candidate
  std::size_t likely_ = 0;                // the candidate that was best last
};

}  // namespace braid::planner
