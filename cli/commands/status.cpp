#include <algorithm>
#include <cmath>

#include <fmt/core.h>

#include "base/error.h"
#include "cli/command.h"
#include "cli/support/options.h"
#include "cli/support/results.h"
#include "cli/support/run_inbox.h"
#include "cli/support/run_status.h"

namespace braid::cli {
namespace {

void print(const RunStatus& status) {
  fmt::print("{}", status.state);
  if (status.state == "running")
    fmt::print(", {} left at {} tokens/s (process {} on {})", duration(status.seconds_left),
               grouped(status.tokens_per_second), status.process, status.host);
  if (status.state == "killed" || status.state == "interrupted") fmt::print("; `braid train --resume` goes on with it");
  const bool evaluates =
      std::ranges::any_of(status.tasks, [](const TaskStatus& task) { return task.best.has_value(); });
  fmt::print("\n{:24} {:>10} {:>13} {:>9}{}\n", "task", "state", "step", "loss",
             evaluates ? fmt::format(" {:>15} {:>8}", "best eval loss", "at step") : "");
  for (const TaskStatus& task : status.tasks)
    fmt::print("{:24} {:>10} {:>13} {:>9}{}\n", task.name, task.state, fmt::format("{}/{}", task.step, task.steps),
               std::isfinite(task.loss) ? fmt::format("{:.4f}", task.loss) : "",
               task.best ? fmt::format(" {:>15.4f} {:>8}", task.best->loss, task.best->step) : "");
}

}  // namespace

int run_status(const std::vector<std::string>& words) {
  CommonFlags flags;
  CommandLine line("braid status RUN [--json], RUN being the folder that `braid train --out` writes", flags);
  std::string run;
  line.add_positional("RUN", run);
  if (!line.parse(words)) return kSuccess;
  const RunStatus status = read_run_status(run);
  if (flags.json) {
    fmt::print("{}", to_json(status));
  } else {
    print(status);
  }
  return kSuccess;
}

int run_task(const std::vector<std::string>& words) {
  CommonFlags flags;
  CommandLine line("braid task cancel RUN TASK: the task takes no further step, and its adapter is written", flags);
  std::string what, run, task;
  line.add_positional("WHAT", what);
  line.add_positional("RUN", run);
  line.add_positional("TASK", task);
  if (!line.parse(words)) return kSuccess;
  if (what != "cancel") throw error("{}: unknown; give `braid task cancel RUN TASK`", what);
  RunInbox::ask_to_cancel(run, task);
  fmt::print("{} is asked to end {}; `braid status {}` tells\n", run, task, run);
  return kSuccess;
}

}  // namespace braid::cli
