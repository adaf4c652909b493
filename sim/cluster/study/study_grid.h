#pragma once

#include "sim/cluster/study/study_settings.h"

namespace braid::sim {

/// Which simulations a study has: every swept point, scheduler, policy, placement and seed, the last varying fastest.
struct StudyGrid {
  std::vector<std::string> schedulers = {"fcfs"};
  std::vector<std::string> policies = {"muxtune"};  ///< not asked for jobs as recorded
  std::vector<Placement> placements = {Placement::packed};
  std::uint64_t first_seed = 1;
  std::int64_t seeds = 1;
  std::vector<std::pair<std::string, std::vector<std::string>>> sweeps;  ///< name, values
};

/// What may be swept.
std::vector<std::string> sweepable();

/// Throws Error for unknown names, which lists those known, and values that make no sense.
std::vector<RunSettings> runs_of(const StudySettings& settings, const StudyGrid& grid);

}  // namespace braid::sim
