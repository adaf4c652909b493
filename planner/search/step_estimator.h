#pragma once

#include <span>
#include <vector>

#include "planner/muxtune/laid_out_bucket.h"
#include "planner/search/bench.h"
#include "planner/search/make_plan.h"

namespace braid::planner {

/// What a step of some tasks takes.
struct StepEstimate {
  double step_seconds = 0;
  double busy_gpu_seconds = 0;  ///< of a step, computing, over all ranks
  std::int32_t layout = 0;      ///< estimates of one layout have their layers on the same ranks
};

/// Tells what steps of sets of tasks take on one cluster under one policy, with most of the search left out: for
/// simulations that ask for thousands of sets.
///
/// Each kind of task by itself, and a few sets of several, are planned; the deployments and numbers of microbatches
/// that those plans chose are all that other sets are tried on. A policy's sketch (MuxTune's: Eq. 3 and the template)
/// says which of them; there the set is arranged, few layouts laid out, and one step of it told. All samples of a task
/// have its mean length; where nothing is padded several steps are told, of samples as they are drawn. `replayed` tells
/// how far off that is.
///
/// Not for concurrent use; what the input refers to must outlive it.
class StepEstimator {
 public:
  /// The kinds are the tasks of the input's workload, which has lengths in place of data; up to `most_tasks` tasks run
  /// together. Throws Error when no kind fits memory by itself.
  StepEstimator(const PlanningInput& input, const PolicyChoice& choice, std::int32_t most_tasks);

  /// Of so many tasks of each kind, at least one in all; nothing where they do not fit memory.
  std::optional<StepEstimate> estimate(std::span<const std::int32_t> counts);

  /// What a full prediction says of the same plan: several steps, samples as they are drawn. For sets that have an
  /// estimate.
  double replayed(std::span<const std::int32_t> counts);

  /// The plan of one task of a kind; nothing where it does not fit memory.
  const std::optional<Plan>& alone(std::size_t kind) const { return alone_[kind]; }
  std::size_t kinds() const { return alone_.size(); }

 private:
  /// A deployment with a number of microbatches.
  struct Candidate {
    std::vector<ReplicaShape> deployment;
    std::int64_t microbatches = 1;
    std::int32_t layout = 0;
    bool operator==(const Candidate&) const = default;
  };
  struct Tasks {
    workload::Workload workload;
    workload::SampleIndex samples;
    std::vector<std::int32_t> kinds;  ///< per task
  };
  struct Laid {
    FixedPlan fixed;
    StepEstimate step;
  };

  Tasks tasks_of(std::span<const std::int32_t> counts, bool drawn) const;
  void learn_from(const Plan& plan);
  void learn_splits(Candidate candidate);
  std::int32_t layout_of(const Plan& plan) const;
  std::optional<Laid> lay(const Tasks& tasks);
  std::optional<Laid> lay(const Tasks& tasks, const Candidate& candidate);
  /// Those with about the least sketch, the least first; none where none may fit, or the policy does not sketch.
  std::vector<const Candidate*> best_sketches(const Tasks& tasks, std::int64_t most_samples);
  /// Candidates that may fit, ascending by what the policy sketches of a step; 0 where it does not sketch.
  std::vector<std::pair<double, const Candidate*>> sketches(const Tasks& tasks, std::int64_t most_samples);
  PolicyInput policy_input(const Tasks& tasks, const Candidate& candidate);
  /// The plan of the one task that is counted.
  const std::optional<Plan>& only(std::span<const std::int32_t> counts) const;
  /// Of several steps, samples as they are drawn.
  Prediction replay_of(const FixedPlan& fixed, std::span<const std::int32_t> counts);

  PlanningInput input_;
  PolicyChoice choice_;
  Bench bench_;
  std::vector<std::optional<Plan>> alone_;  // per kind
  std::vector<Candidate> candidates_;       // those of plans, then those for where nothing else fits
  std::size_t learned_ = 0;                 // of plans
  std::vector<LaidOutBuckets> laid_out_;    // per candidate
  std::size_t likely_ = 0;                  // the candidate that was best last
};

}  // namespace braid::planner
