#pragma once

#include "planner/program/memory_walk.h"
#include "planner/window/window_steps.h"

namespace braid::planner {

/// What every rank needs, of as much as was walked.
struct RankMemory {
  std::vector<Bytes> peak;
  std::vector<Bytes> held;  ///< from beginning to end

  /// Where a stage of `program` needs more than was told so far.
  void raise(const Program& program, std::span<const StageMemory> stages);
};

/// What every rank needs in a whole run. All windows of a turn are walked where they have no more than the turn's share
/// of `instructions`; else, of at most kScannedWindows evenly over it, those with the largest microbatch, the most
/// tokens and the most rows with a loss.
struct RunMemory : RankMemory {
  /// Each turn's first, and for each stage one in which one of its ranks holds the most. Ascending.
  std::vector<std::int64_t> telling_windows;
};
inline constexpr std::int64_t kScannedWindows = 2000;
inline constexpr std::int64_t kWalkedInstructions = 100'000;

/// Not for endless input.
RunMemory run_memory(const FixedPlan& fixed, const WindowInput& input, std::int64_t instructions = kWalkedInstructions);

}  // namespace braid::planner
