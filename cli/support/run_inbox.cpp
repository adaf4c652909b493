#include "cli/support/run_inbox.h"

#include <algorithm>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "cli/support/run_status.h"

namespace braid::cli {
namespace {

constexpr double kSecondsBetweenLooks = 0.2;
constexpr const char* kCancel = ".cancel";

}  // namespace

RunInbox::RunInbox(const std::filesystem::path& run, const workload::Workload& workload)
    : folder_(run / "inbox"), workload_(workload) {}

void RunInbox::reject(const std::filesystem::path& file, const std::string& reason) const {
  const std::filesystem::path rejected = folder_ / "rejected" / file.filename();
  std::error_code ignored;
  std::filesystem::create_directories(rejected.parent_path(), ignored);
  std::filesystem::rename(file, rejected, ignored);
  std::filesystem::path beside = rejected;
  beside += ".reason";
  try {
    write_file(beside, reason + "\n");
  } catch (const std::exception&) {  // on a full disk the run goes on without
  }
}

std::optional<planner::TaskIndex> RunInbox::next_cancelled() {
  if (seconds_since(looked_) < kSecondsBetweenLooks) return std::nullopt;
  looked_ = SteadyClock::now();
  std::error_code none;
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder_, none)) {
    const std::string name = entry.path().filename().string();
    // What is being written has its name later.
    if (entry.is_regular_file(none) && !name.ends_with(".tmp")) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  for (const std::filesystem::path& file : files) {
    if (file.extension() != kCancel) {
      reject(file, "a run takes TASK.cancel alone; begin another run for other tasks");
      continue;
    }
    const auto task = std::ranges::find(workload_.tasks, file.stem().string(), &workload::Task::name);
    if (task == workload_.tasks.end()) {
      reject(file, fmt::format("the run has no task {}", file.stem().string()));
      continue;
    }
    return static_cast<planner::TaskIndex>(task - workload_.tasks.begin());
  }
  return std::nullopt;
}

void RunInbox::forget(planner::TaskIndex task) const {
  std::error_code none;
  std::filesystem::remove(folder_ / (workload_.tasks[static_cast<std::size_t>(task)].name + kCancel), none);
}

void RunInbox::ask_to_cancel(const std::filesystem::path& run, const std::string& task) {
  const RunStatus status = read_run_status(run);
  const auto found = std::ranges::find(status.tasks, task, &TaskStatus::name);
  if (found == status.tasks.end()) {
    std::string known;
    for (const TaskStatus& one : status.tasks) known += (known.empty() ? "" : ", ") + one.name;
    throw error("{}: the run has no task '{}'; give one of: {}", run.string(), task, known);
  }
  if (status.state != "running")
    throw error("{}: the run is {}, so there is nothing to cancel", run.string(), status.state);
  if (found->state != "running" && found->state != "waiting")
    throw error("{}: task {} is {} already", run.string(), task, found->state);
  write_file(run / "inbox" / (task + kCancel), "");
}

}  // namespace braid::cli
