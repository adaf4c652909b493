#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace braid::sim {

/// Of all rounds of schedulers that deal GPUs out anew, which begin at its multiples (Gavel's length).
inline constexpr double kRoundSeconds = 360;

/// GPUs that a job may have, and how fast it is on them; 0: not at all.
struct GpuOption {
  std::int32_t gpus = 0;
  double pace = 0;
};

/// GPUs for each job, 0 for none, so that paces add up to as much as they can: those that add the most pace for a GPU
/// go first, of like ones those of the first job. No option is passed over that a mix of a smaller and a larger one
/// would better, so that what is missing to the best is less than one job's next options add. Options ascend by GPUs.
/// Cost: O(options log jobs).
std::vector<std::int32_t> allocate(std::int64_t gpus, std::span<const std::vector<GpuOption>> jobs);

}  // namespace braid::sim
