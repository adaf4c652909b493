#pragma once

#include "planner/lobra/deployment_search.h"
#include "planner/plan/policy.h"

namespace braid::planner {

/// A kind of replica that the cluster could deploy, and where its layers are.
struct ReplicaKind {
  ReplicaShape shape;
  Configuration configuration;
};

/// How rows come to microbatches of a replica.
struct RowRules {
  std::int64_t interval = 256;   ///< tokens
  std::int64_t longest = 0;      ///< tokens of the longest sample
  std::int64_t step_tokens = 0;  ///< of a step at the most: no microbatch has more
  bool mixes_tasks = true;       ///< rows of all tasks come together
  costmodel::AdapterKernels kernels = costmodel::AdapterKernels::separate;
  bool doubled = false;  ///< no microbatch has more tokens than the largest power of two intervals that fits
};

/// Every ⟨tp, pp⟩ that the cluster has room for, heads and layers allow and the overrides leave, with each of these
/// recomputations: with the most tokens a microbatch that fit the memory of its ranks, as many microbatches under way
/// as 1F1B has, and where it has stages with halves, quarters and eighths of those; where recomputation may be chosen,
/// of as few layers as hold those and the longest sample. What a microbatch takes is that of the slowest stage, by the
/// cost model, with rows of as many tasks as it can have, or of the task with the largest adapter. Kinds that hold not
/// even one interval are left out (LobRA §4.2, appendix D).
std::vector<ReplicaKind> replica_kinds(const ProposalInput& input, const RowRules& rules,
                                       std::span<const costmodel::RecomputeKind> recompute);

}  // namespace braid::planner
