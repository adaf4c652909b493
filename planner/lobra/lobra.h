#pragma once

#include "planner/plan/policy.h"

namespace braid::planner {

/// Which of LobRA's systems, and which parts of it.
struct LobraRules {
  bool unlike_replicas = true;  ///< else all of one kind (the paper's baselines)
  bool one_by_one = false;      ///< each task's steps by themselves, to its end, before the next task's
  /// The best deployment that the search finds starts a mixed-integer program (deployment_model.h).
  bool solved = false;
  LengthDispatch::Kind dispatch = LengthDispatch::Kind::balanced;
  /// Tokens that a microbatch may have are benchmarked in doubling steps, as the paper's are, and not found exactly.
  bool doubled = false;
  bool fixed_ranges = false;  ///< the same for every step (without dynamic bucketing)
  std::int64_t ranges = 16;
  /// Not LobRA's: rows lie end to end in microbatches of one capacity a replica, of a pipeline without a flush
  /// (TokenBins), with the tasks in several groups.
  bool bins = false;
  std::int64_t interval = 0;  ///< tokens; 0: 256, or of short samples a sixteenth of the longest
  costmodel::AdapterKernels kernels = costmodel::AdapterKernels::separate;
  std::vector<costmodel::RecomputeKind> recompute = {costmodel::RecomputeKind::none};
};

/// The deployments that LobRA's first stage finds the fastest in expectation (§4.2), the best first, each with its
/// second stage's rules for every step (§4.3). Empty where no kind of replica holds the longest sample. A solution that
/// is given (ProposalInput::models) has its deployment proposed, alone; throws Error where that has no room or holds
/// not all lengths.
std::vector<Arrangement> propose_lobra(const ProposalInput& input, const LobraRules& rules);

}  // namespace braid::planner
