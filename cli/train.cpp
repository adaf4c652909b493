#include <optional>
#include <ostream>

#include <fmt/core.h>

#include "base/error.h"
#include "base/file.h"
#include "base/parallel.h"
#include "cli/command.h"
#include "cli/launch.h"
#include "cli/run_ranks.h"
#include "cli/training_log.h"

namespace braid::cli {
namespace {

/// The recorded windows of a run as one trace, which begins at 0.
void write_timeline(const std::filesystem::path& file, const planner::Plan& plan, const exec::TrainResult& result) {
  planner::Program joined;
  planner::Timeline timeline;
  for (const exec::RecordedWindow& recorded : result.recorded)
    planner::append_window(recorded.program, recorded.timeline, joined, timeline);
  timeline.shift(-timeline.begin());
  const std::vector<std::string> names = task_names(plan.workload);
  write_file(file, [&](std::ostream& out) { planner::write_trace(joined, timeline, names, out); });
}

int execute(const planner::Plan& plan, const CommonFlags& flags) {
  const std::unique_ptr<exec::Communicator> communicator = communicator_for(plan);
  set_thread_count(threads_of_rank(flags, plan.ranks()));
  const Data data = load_data(plan.workload, true);
  const exec::RunInput input{plan.fixed, plan.workload, data.samples, data.datasets};
  exec::Runner runner(input, *communicator);
  const bool tells = communicator->rank() == 0;
  const std::filesystem::path out = flags.out;
  std::optional<TrainingLog> log;
  if (tells) {
    log.emplace(plan, data.samples, out / "metrics.jsonl", flags.quiet);
    write_file(out / "plan.json", planner::to_json(plan));
    std::filesystem::remove_all(out / "adapters");  // of a run before, which --overwrite gave up
  }
  const InterruptGuard interrupts;
  exec::TrainOptions options;
  options.stop = &interrupts.asked();
  options.on_window = [&](const exec::WindowReport& report) { log->on_window(report); };
  const exec::TrainResult result = exec::train(plan, data.samples, runner, *communicator, options);
  exec::write_adapters(out / "adapters", plan.workload, result.diverged, runner, *communicator);
  if (tells) {
    write_timeline(flags.timeline_out.empty() ? out / "timeline.json" : std::filesystem::path(flags.timeline_out), plan,
                   result);
    if (flags.json) {
      fmt::print("{}", log->summary_json());
    } else {
      log->print_summary();
      fmt::print("adapters, metrics.jsonl and timeline.json are in {}\n", out.string());
    }
    if (result.interrupted)
      fmt::print(stderr, "interrupted: the steps under way were finished and the adapters were written\n");
  }
  if (result.interrupted) return kInterrupted;
  return result.diverged.empty() ? kSuccess : kFailure;
}

}  // namespace

int run_train(const std::vector<std::string>& words) {
  CommonFlags flags;
  CommandLine line("braid train (--plan FILE | --workload FILE) --out DIR [options]", flags);
  line.add_plan();
  line.add_planning("megatron-pp");
  line.add_out("folder for adapters/, metrics.jsonl, timeline.json and plan.json");
  line.add_threads();
  line.add_timeline();
  if (!line.parse(words)) return kSuccess;
  if (flags.out.empty()) throw error("--out is missing; give a folder for the adapters and metrics");
  if (exec::launched_ranks() == 0) check_output_folder(flags.out, flags.overwrite);
  if (exec::launched_ranks() == 0) check_writable(std::filesystem::path(flags.out) / "plan.json");
  const planner::Plan plan = plan_from_flags(flags);
  if (!must_launch(plan)) return execute(plan, flags);
  return launch_with_plan("train", plan, flags);
}

}  // namespace braid::cli
