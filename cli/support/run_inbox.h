#pragma once

#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "base/steady_clock.h"

namespace braid::cli {

/// What is asked of a run: a file in its inbox.
struct RunRequest {
  enum class Kind {
    join,     ///< NAME.yaml, NAME.yml or NAME.json: tasks, as read_more_tasks reads them
    cancel,   ///< TASK.cancel: the task takes no further step
    pause,    ///< TASK.pause: none until it is asked to resume
    resume,   ///< TASK.resume
    priority  ///< TASK.priority, of which the file holds the number
  };
  Kind kind = Kind::join;
  std::filesystem::path file;
  std::string task;  ///< but of a join
};
std::string_view name(RunRequest::Kind kind);

/// What others ask of a run while it goes: files in its folder's inbox/. Each stays until what it asks for is on the
/// disk, so that it is not lost with the process; what cannot be done is moved to inbox/rejected/, with the reason
/// beside it in NAME.reason, which the run tells on stderr and `braid status` from then on.
class RunInbox {
 public:
  explicit RunInbox(const std::filesystem::path& run) : folder_(run / "inbox") {}

  /// Those that were not told before, by name. Looks at the folder a few times a second at the most, or `now`.
  std::vector<RunRequest> look(bool now = false);
  /// It has been done, or there is nothing to do any more.
  void done(const RunRequest& request);
  void reject(const RunRequest& request, const std::string& reason);
  /// "NAME: reason" of all that was rejected, by name.
  static std::vector<std::string> rejected(const std::filesystem::path& run);

  /// The number in what stands in TASK.priority. Throws Error where it is none.
  static std::int64_t priority_of(std::string text);

  /// Asks a run, which need not go on just now, to do that with a task. `content` stands in the file. Throws Error
  /// where the folder holds no run, or it has no such task or one that has ended.
  static void ask(const std::filesystem::path& run, RunRequest::Kind kind, const std::string& task,
                  const std::string& content = "");
  /// Asks it to take the tasks of that file in. Throws Error where it would refuse the file as it stands.
  static std::vector<std::string> ask_to_join(const std::filesystem::path& run, const std::filesystem::path& file);

 private:
  std::filesystem::path folder_;
  std::set<std::filesystem::path> told_;
  SteadyClock::time_point looked_;
};

}  // namespace braid::cli
