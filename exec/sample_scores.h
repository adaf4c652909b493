#pragma once

#include "exec/objectives/task_objectives.h"
#include "exec/rank_place.h"
#include "exec/ranks/communicator.h"
#include "exec/run_input.h"
#include "exec/stage_model.h"

namespace braid::exec {

/// A rank that scores samples together with all others of the run.
struct ScoringRank {
  StageModel& model;
  const std::vector<RankPlace>& places;  ///< of all ranks
  const RankPlace& place;
  Communicator& communicator;
  CommunicatorGroup* shards;  ///< of the stage, where there are several
  std::span<const std::unique_ptr<Adapter>> adapters;
  std::span<const std::uint64_t> seeds;
  BufferPool& pool;
  const RunInput& input;
};

/// The numbers of the task's samples that its steps in those windows take; where none is named, of all its steps and
/// those that it is evaluated on. Ascending.
std::vector<std::int64_t> samples_of_windows(const RunInput& input, planner::TaskIndex task,
                                             std::span<const std::int64_t> windows);

/// The numbers of the samples that the task is evaluated on.
std::vector<std::int64_t> held_out_samples(const RunInput& input, planner::TaskIndex task);

/// What the token losses of each sequence of those samples sum up to, by the task's adapter as it is and without dropout;
/// zeros for the others. All ranks call this alike, with nothing under way. A stage computes a microbatch while the
/// stage before computes the next; replicas share the samples.
References score_samples(const ScoringRank& rank, planner::TaskIndex task, std::span<const std::int64_t> samples);

}  // namespace braid::exec
