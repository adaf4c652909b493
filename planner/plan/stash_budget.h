#pragma once

#include "planner/plan/policy.h"

namespace braid::planner {

/// The shape of each stage of the first replica.
std::vector<costmodel::StageShape> stage_shapes(const ReplicaShape& replica);

/// What the memory of each stage leaves for stashes.
class StashBudget {
 public:
  StashBudget(const PolicyInput& input, const costmodel::Storage& storage);

  /// Given, per stage, the most scratch that a pass needs, and the largest message; 0 where memory is not limited,
  /// negative where nothing is left.
  std::vector<Bytes> with(std::span<const Bytes> scratch, Bytes message) const;

 private:
  Bytes capacity_;
  bool sends_;
  std::vector<Bytes> held_;  // per stage, throughout
};

/// The most scratch that a pass of the load needs on each stage, beside the stash.
std::vector<Bytes> scratch_of(const costmodel::BackboneShape& backbone, std::span<const costmodel::StageShape> stages,
                              const costmodel::MicrobatchLoad& load, const costmodel::Storage& storage);

/// The budget with the most that any of these loads needs.
std::vector<Bytes> stash_budget(const PolicyInput& input, const costmodel::Storage& storage,
                                std::span<const costmodel::MicrobatchLoad> loads);

}  // namespace braid::planner
