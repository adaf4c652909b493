#pragma once

#include <span>
#include <string>
#include <vector>

#include "planner/plan/plan.h"

// How fast a pipeline can be at the best, whatever the order of its passes.
namespace braid::planner {

/// Seconds of work. Link l joins stages l and l + 1; as much goes up as down.
struct PassSeconds {
  std::vector<double> forward;     ///< per stage
  std::vector<double> backward;    ///< per stage
  std::vector<double> collective;  ///< per stage: its ranks' link, forward and backward together; empty: nothing
  std::vector<double> message;     ///< per link, in one direction; empty: nothing
  std::vector<double> waiting;     ///< per stage: the part of its passes in which it does not compute; empty: nothing
};

/// What one step takes at least on one replica. Every microbatch takes at least `least`, pass by pass.
struct BoundBatch {
  PassSeconds whole;
  PassSeconds least;
};

struct BoundTask {
  std::string name;
  BoundBatch batch;                  ///< the microbatches that hold rows of the task
  std::vector<double> step_seconds;  ///< its Step, per stage; empty: nothing
  std::vector<double> sync_seconds;  ///< sums and norms of its gradients, per stage, beside passes; empty: nothing
  double round_trip_seconds = 0;     ///< of a microbatch, where it is more than the sum of `least`
  double finish_seconds = 0;         ///< on stage 0, from its last backward to the end of its Step
};

/// Tasks that share a pipeline.
struct BoundProblem {
  std::vector<BoundTask> tasks;
  BoundBatch together;  ///< all microbatches; see `add_up`
  bool drains = false;  ///< before any task's next step all have ended this one
};

/// What microbatches of one task each come to.
BoundBatch add_up(std::span<const BoundTask> tasks);

/// No schedule lets every task take a step in less time: once where the pipeline drains, else in the mean over a long
/// run. The greatest of
/// - each stage's compute, collectives and gradient sums and each link's traffic; where the pipeline drains also what
///   must come before and after the passes and messages;
/// - each task's cycle, for its Step stands before the first forward of its next global batch: a round trip of its
///   smallest microbatch and what one stage or link needs beyond that. For L tasks of N microbatches on D stages, all
///   passes alike, that is mLoRA's max(L N, D + N − 1) passes (§3.2.2).
/// The arguments stand at the terms. Cost: linear in tasks × stages.
LowerBound pipeline_bound(const BoundProblem& problem);

}  // namespace braid::planner
