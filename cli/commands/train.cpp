#include <optional>
#include <ostream>

#include <fmt/core.h>

#include "base/error.h"
#include "base/file.h"
#include "base/parallel.h"
#include "cli/command.h"
#include "cli/commands/training_log.h"
#include "cli/support/backend.h"
#include "cli/support/launch.h"
#include "cli/support/run_ranks.h"

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

/// Numbers of adapters hardly pass 10 in training that goes well.
constexpr double kReasonableMagnitude = 1e3;

/// Warns of adapters whose numbers are beyond all reason; false where one was not written for them.
bool tell_of_magnitudes(const workload::Workload& workload, const std::vector<double>& largest) {
  bool written = true;
  for (std::size_t task = 0; task < largest.size(); ++task) {
    const std::string& name = workload.tasks[task].name;
    if (!std::isfinite(largest[task])) {
      fmt::print(stderr,
                 "{}: the adapter's numbers are not finite after the last step; it is not written (lower its lr?)\n",
                 name);
      written = false;
    } else if (largest[task] > kReasonableMagnitude) {
      fmt::print(stderr,
                 "{}: the adapter's numbers reach {:.2g}, far beyond those of training that goes well; it is written, "
                 "but is hardly of use (lower its lr?)\n",
                 name, largest[task]);
    }
  }
  return written;
}

int execute(const planner::Plan& plan, const CommonFlags& flags) {
  const std::unique_ptr<exec::Communicator> communicator = communicator_for(plan);
  check_ranks_are_alike(plan, *communicator);
  set_thread_count(threads_of_rank(flags, plan.ranks()));
  const Data data = load_data(plan.workload, true);
  const exec::RunInput input{plan.fixed, plan.workload, data.samples, data.datasets};
  const std::unique_ptr<kernels::Device> device = make_device(backend_of(flags, plan));
  exec::Runner runner(input, *communicator, *device);
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
  options.on_references = [&](planner::TaskIndex task, std::size_t pairs) {
    if (!flags.quiet)
      fmt::print(stderr, "{}: {} pairs are scored by the model as the task begins with it\n",
                 plan.workload.tasks[static_cast<std::size_t>(task)].name, pairs);
  };
  options.on_window = [&](const exec::WindowReport& report) { log->on_window(report); };
  const exec::TrainResult result = exec::train(plan, data.samples, runner, *communicator, options);
  const std::vector<double> largest =
      exec::write_adapters(out / "adapters", plan.workload, result.diverged, runner, *communicator);
  const std::vector<Bytes> most_held = gather_bytes(device->most_held(), *communicator);
  bool written = result.diverged.empty();
  if (tells) {
    log->set_most_held(most_held);
    written = tell_of_magnitudes(plan.workload, largest) && written;
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
  return written ? kSuccess : kFailure;
}

}  // namespace

int run_train(const std::vector<std::string>& words) {
  CommonFlags flags;
  CommandLine line("braid train (--plan FILE | --workload FILE) --out DIR [options]", flags);
  line.add_plan();
  line.add_planning("braid");
  line.add_out("folder for adapters/, metrics.jsonl, timeline.json and plan.json");
  line.add_threads();
  line.add_timeline();
  if (!line.parse(words)) return kSuccess;
  if (flags.out.empty()) throw error("--out is missing; give a folder for the adapters and metrics");
  if (exec::launched_ranks() == 0) check_output_folder(flags.out, flags.overwrite);
  if (exec::launched_ranks() == 0) check_writable(std::filesystem::path(flags.out) / "plan.json");
  if (!flags.backend.empty()) make_device(flags.backend);
  const planner::Plan plan = plan_from_flags(flags);
  if (!must_launch(plan, backend_of(flags, plan))) return execute(plan, flags);
  return launch_with_plan("train", plan, flags);
}

}  // namespace braid::cli
