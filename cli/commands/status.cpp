#include <algorithm>
#include <cmath>

#include <fmt/core.h>
#include <fmt/ranges.h>

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
  for (const std::string& refused : status.refused) fmt::print("refused {}\n", refused);
}

int tell_status(const std::string& run, bool json) {
  RunStatus status = read_run_status(run);
  status.refused = RunInbox::rejected(run);
  if (json) {
    fmt::print("{}", to_json(status));
  } else {
    print(status);
  }
  return kSuccess;
}

}  // namespace

int run_status(const std::vector<std::string>& words) {
  CommonFlags flags;
  CommandLine line("braid status RUN [--json], RUN being the folder that `braid train --out` writes", flags);
  std::string run;
  line.add_positional("RUN", run);
  if (!line.parse(words)) return kSuccess;
  return tell_status(run, flags.json);
}

int run_task(const std::vector<std::string>& words) {
  CommonFlags flags;
  CommandLine line(
      "braid task add RUN FILE | list RUN | cancel|pause|resume RUN TASK | priority RUN TASK NUMBER\n"
      "RUN is the folder that `braid train --out` writes; FILE holds tasks as workload.yaml has them",
      flags);
  std::string what, run, which, number;
  line.add_positional("WHAT", what);
  line.add_positional("RUN", run);
  line.add_optional_positional("TASK", which);
  line.add_optional_positional("NUMBER", number);
  if (!line.parse(words)) return kSuccess;
  if (what == "list") {
    if (!which.empty()) throw error("{}: too much; give `braid task list RUN`", which);
    return tell_status(run, flags.json);
  }
  if (flags.json) throw error("--json is of `braid task list`; leave it out");
  if (which.empty()) throw error("what to {} is missing; see `braid task --help`", what);
  if ((what == "priority") == number.empty())
    throw error("{}: give `braid task priority RUN TASK NUMBER`, and a number to nothing else",
                number.empty() ? "the number is missing" : number);
  std::string asked;
  using Kind = RunRequest::Kind;
  if (what == "add") {
    asked = fmt::format("{} to join", fmt::join(RunInbox::ask_to_join(run, which), ", "));
  } else if (what == "cancel" || what == "pause" || what == "resume") {
    RunInbox::ask(run, what == "cancel" ? Kind::cancel : what == "pause" ? Kind::pause : Kind::resume, which);
    asked = which + (what == "cancel" ? " to end" : what == "pause" ? " to pause" : " to go on");
  } else if (what == "priority") {
    RunInbox::priority_of(number);
    RunInbox::ask(run, Kind::priority, which, number);
    asked = fmt::format("{} to have priority {}", which, number);
  } else {
    throw error("{}: unknown; give one of: add, list, cancel, pause, resume, priority", what);
  }
  const std::string state = read_run_status(run).state;
  const bool goes_on = state == "running" || state == "waiting";
  fmt::print("asked {}; `braid {} {}` {}\n", asked, goes_on ? "status" : "train --resume --out", run,
             goes_on ? "tells" : "takes it up, as the run is " + state);
  return kSuccess;
}

}  // namespace braid::cli
