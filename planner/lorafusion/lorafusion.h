#pragma once

#include "planner/plan/policy.h"

namespace braid::planner {

/// Which parts of LoRAFusion's scheduler, and what of it is given.
struct LoraFusionRules {
  std::int64_t groups = 0;    ///< of adapters; 0: searched
  std::int64_t capacity = 0;  ///< tokens of a microbatch; 0: searched
  std::int64_t multiple = 64;
  BinSearch search = BinSearch::searched;
  std::vector<bool> merges = {true, false};  ///< that are tried
  costmodel::AdapterKernels kernels = costmodel::AdapterKernels::fused;
  std::vector<costmodel::RecomputeKind> recompute = {costmodel::RecomputeKind::none};
};

/// Plans with the parallelism, capacity and grouping that look the fastest, the most promising first: microbatches of
/// fixed length as large as memory holds them and a half, a quarter, ... of those, on every deployment of like replicas
/// (LoRAFusion §5.2, parallelism profiler). Empty where no deployment holds the longest sample.
/// Throws Error where a given capacity does not hold the longest sample, or a given multiple is more than that.
std::vector<Arrangement> propose_lorafusion(const ProposalInput& input, const LoraFusionRules& rules);

}  // namespace braid::planner
