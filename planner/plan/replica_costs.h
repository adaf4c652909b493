#pragma once

#include "planner/plan/policy.h"

namespace braid::planner {

/// What microbatches of rows of one length take on a replica, and how large they may be: for policies that find their
/// deployments themselves, and ask before anything is laid out.
class ReplicaCosts {
 public:
  /// Rows of all tasks come together, or where they do not those of the task with the largest adapter.
  ReplicaCosts(const ProposalInput& input, costmodel::AdapterKernels kernels, bool mixes_tasks);

  /// So many rows of so many tokens, of the tasks in turn.
  costmodel::MicrobatchLoad load_of(std::int64_t rows, std::int64_t length) const;

  /// The most tokens of a microbatch, in multiples of `unit` and about up to `most`, of which as many as 1F1B has under
  /// way fit the memory of every rank; 0: none.
  std::int64_t most_tokens(const ReplicaShape& shape, std::int64_t unit, std::int64_t most) const;

  /// The same replica with as few layers of each stage recomputed, so as they are, as hold microbatches of so many
  /// tokens; it holds them with all.
  ReplicaShape with_fewest_layers(const ReplicaShape& shape, std::int64_t tokens) const;

  /// Seconds of the forward and backward pass on the slowest stage.
  double slowest_stage(const ReplicaShape& shape, const costmodel::MicrobatchLoad& load) const;

 private:
  /// Of each rank.
  std::vector<bool> fits(const ReplicaShape& shape, std::int64_t tokens) const;
  bool all_fit(const ReplicaShape& shape, std::int64_t tokens) const;

  const ProposalInput& input_;
  costmodel::AdapterKernels kernels_;
  bool mixes_tasks_;
  const costmodel::AdapterShape& heaviest_;
};

}  // namespace braid::planner
