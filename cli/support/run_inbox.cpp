#include "cli/support/run_inbox.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <chrono>
#include <optional>

#include "base/error.h"
#include "base/file.h"
#include "cli/support/run_status.h"
#include "planner/plan/plan.h"

namespace braid::cli {
namespace {

constexpr double kSecondsBetweenLooks = 0.2;
using Kind = RunRequest::Kind;

std::optional<RunRequest> request_of(const std::filesystem::path& file) {
  const std::string extension = file.extension();
  for (const Kind kind : {Kind::cancel, Kind::pause, Kind::resume, Kind::priority})
    if (extension == "." + std::string(name(kind))) return RunRequest{kind, file, file.stem().string()};
  if (extension == ".yaml" || extension == ".yml" || extension == ".json") return RunRequest{Kind::join, file, ""};
  return std::nullopt;
}

}  // namespace

std::string_view name(RunRequest::Kind kind) {
  switch (kind) {
    case Kind::cancel:
      return "cancel";
    case Kind::pause:
      return "pause";
    case Kind::resume:
      return "resume";
    case Kind::priority:
      return "priority";
    case Kind::join:
      break;
  }
  return "join";
}

namespace {

/// Whether somebody has made the file just now and written nothing of what it is to hold.
bool only_begun(const std::filesystem::directory_entry& entry) {
  constexpr std::chrono::seconds kPatience{2};
  const std::filesystem::path kind = entry.path().extension();
  std::error_code none;
  return (kind == ".yaml" || kind == ".priority") && entry.file_size(none) == 0 &&
         std::filesystem::file_time_type::clock::now() - entry.last_write_time(none) < kPatience;
}

}  // namespace

std::vector<RunRequest> RunInbox::look(bool now) {
  std::vector<RunRequest> requests;
  if (!now && seconds_since(looked_) < kSecondsBetweenLooks) return requests;
  looked_ = SteadyClock::now();
  std::error_code none;
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder_, none)) {
    const std::string file = entry.path().filename().string();
    // What is being written has its name later, or is empty for a moment.
    if (entry.is_regular_file(none) && !file.ends_with(".tmp") && !file.starts_with(".") && !only_begun(entry))
      files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  for (const std::filesystem::path& file : files) {
    if (told_.contains(file)) continue;
    if (std::optional<RunRequest> request = request_of(file)) {
      told_.insert(file);
      requests.push_back(std::move(*request));
    } else {
      reject({Kind::join, file, ""}, "a run takes tasks in NAME.yaml, and TASK.cancel, .pause, .resume and .priority");
    }
  }
  return requests;
}

void RunInbox::done(const RunRequest& request) {
  std::error_code none;
  std::filesystem::remove(request.file, none);
  told_.erase(request.file);
}

std::int64_t RunInbox::priority_of(std::string text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back()))) text.pop_back();
  std::int64_t number = 0;
  const auto [end, wrong] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (wrong != std::errc() || end != text.data() + text.size())
    throw error("'{}' is no priority; give a whole number", text);
  return number;
}

std::vector<std::string> RunInbox::rejected(const std::filesystem::path& run) {
  std::vector<std::string> told;
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(run / "inbox" / "rejected", none)) {
    if (entry.path().extension() != ".reason") continue;
    std::string reason = read_file(entry.path());
    reason.erase(reason.find_last_not_of('\n') + 1);
    told.push_back(fmt::format("{}: {}", entry.path().stem().string(), reason));
  }
  std::ranges::sort(told);
  return told;
}

void RunInbox::reject(const RunRequest& request, const std::string& reason) {
  fmt::print(stderr, "{} is refused: {}\n", request.file.filename().string(), reason);
  const std::filesystem::path rejected = folder_ / "rejected" / request.file.filename();
  std::error_code ignored;
  std::filesystem::create_directories(rejected.parent_path(), ignored);
  std::filesystem::path beside = rejected;
  beside += ".reason";
  try {
    write_file(beside, reason + "\n");  // first: whoever is killed between the two refuses the request once more
  } catch (const std::exception&) {      // on a full disk the run goes on without
  }
  std::filesystem::rename(request.file, rejected, ignored);
  if (ignored) std::filesystem::remove(request.file, ignored);  // so that it is not refused again and again
  told_.erase(request.file);
}

void RunInbox::ask(const std::filesystem::path& run, Kind kind, const std::string& task, const std::string& content) {
  const RunStatus status = read_run_status(run);
  const auto found = std::ranges::find(status.tasks, task, &TaskStatus::name);
  if (found == status.tasks.end()) {
    std::string known;
    for (const TaskStatus& one : status.tasks) known += (known.empty() ? "" : ", ") + one.name;
    throw error("{}: the run has no task '{}'; give one of: {}", run.string(), task, known);
  }
  const bool waits = found->state == "paused";
  if (found->state != "running" && found->state != "waiting" && !waits)
    throw error("{}: task {} is {} already", run.string(), task, found->state);
  if ((kind == Kind::pause && waits) || (kind == Kind::resume && !waits))
    throw error("{}: task {} is {} already", run.string(), task, found->state);
  write_file(run / "inbox" / (task + "." + std::string(name(kind))), content);
}

std::vector<std::string> RunInbox::ask_to_join(const std::filesystem::path& run, const std::filesystem::path& file) {
  read_run_status(run);
  const planner::Plan plan = planner::read_plan(run / "plan.json");
  const std::filesystem::path folder = std::filesystem::absolute(file).parent_path();
  std::vector<std::string> names;
  std::string text;
  for (const workload::Task& task : workload::read_more_tasks(file, folder, plan.workload)) {
    names.push_back(task.name);
    text += (text.empty() ? "{\"tasks\": [" : ",\n") + workload::to_json(task);
  }
  write_file(run / "inbox" / (names.front() + ".json"), text + "]}\n");
  return names;
}

}  // namespace braid::cli
