#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "base/steady_clock.h"
#include "planner/program/program.h"
#include "workload/workload.h"

namespace braid::cli {

/// What others ask of a run while it goes: files in its folder's inbox/. TASK.cancel asks that the task take no further
/// step. Anything else is moved to inbox/rejected/, with the reason beside it in NAME.reason, and nothing else notices.
class RunInbox {
 public:
  RunInbox(const std::filesystem::path& run, const workload::Workload& workload);

  /// A task that is to be cancelled. Looks at the folder a few times a second at the most.
  std::optional<planner::TaskIndex> next_cancelled();
  /// A task has ended, so that there is nothing to ask for any more.
  void forget(planner::TaskIndex task) const;

  /// Asks a run that goes on. Throws Error where none does in that folder, or it has no such task.
  static void ask_to_cancel(const std::filesystem::path& run, const std::string& task);

 private:
  void reject(const std::filesystem::path& file, const std::string& reason) const;

  std::filesystem::path folder_;
  const workload::Workload& workload_;
  SteadyClock::time_point looked_;
};

}  // namespace braid::cli
