#pragma once

#include <span>
#include <vector>

#include "planner/program.h"

namespace braid::planner {

/// One entry of a stage's compute order.
struct ComputeSlot {
  Kind kind = Kind::forward;  ///< forward or backward
  MicrobatchId microbatch = 0;
  bool joins = false;  ///< one instruction with the slot before, of the same kind: hTasks of one bucket
  bool operator==(const ComputeSlot&) const = default;
};
using StageOrder = std::vector<ComputeSlot>;

/// All forwards, then all backwards, both in the order given (GPipe, Huang et al. 2019).
StageOrder gpipe_order(std::span<const MicrobatchId> microbatches);

/// One forward, one backward (PipeDream-Flush, Narayanan et al. 2021): stage `stage` of `stages` runs stages − stage −
/// 1 forwards ahead. The order is that of an endless stream cut to these microbatches.
StageOrder one_forward_one_backward_order(std::span<const MicrobatchId> microbatches, int stage, int stages);

/// Each microbatch forward and backward before the next begins.
StageOrder one_by_one_order(std::span<const MicrobatchId> microbatches);

}  // namespace braid::planner
