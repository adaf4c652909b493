#include <algorithm>
#include <optional>
#include <ostream>

#include <fmt/core.h>

#include "base/error.h"
#include "base/file.h"
#include "base/file_lock.h"
#include "base/parallel.h"
#include "cli/command.h"
#include "cli/commands/training_log.h"
#include "cli/support/backend.h"
#include "cli/support/launch.h"
#include "cli/support/run_inbox.h"
#include "cli/support/run_ranks.h"
#include "cli/support/run_status.h"
#include "cli/support/tensorboard.h"

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

/// What the command's own flags say.
struct TrainFlags {
  bool resume = false;
  double checkpoint_minutes = 10;
  std::int64_t checkpoint_steps = 0;
};

/// The adapters of a run, each written once its task has taken its last step, or at the end.
class AdapterWriter {
 public:
  AdapterWriter(std::filesystem::path folder, const workload::Workload& workload, exec::Runner& runner,
                exec::Communicator& communicator)
      : folder_(std::move(folder)),
        workload_(workload),
        runner_(runner),
        communicator_(communicator),
        largest_(workload.tasks.size()) {}

  void write(planner::TaskIndex task) {
    largest_[static_cast<std::size_t>(task)] = exec::write_adapter(folder_, workload_, task, runner_, communicator_);
  }
  void write_others(const std::set<planner::TaskIndex>& without) {
    for (planner::TaskIndex task = 0; task < static_cast<planner::TaskIndex>(largest_.size()); ++task)
      if (!largest_[static_cast<std::size_t>(task)] && !without.contains(task)) write(task);
  }
  /// Per task, on rank 0: the largest magnitude of its numbers, 0 of those that were not written.
  std::vector<double> largest() const {
    std::vector<double> all;
    for (const std::optional<double>& one : largest_) all.push_back(one.value_or(0));
    return all;
  }

 private:
  std::filesystem::path folder_;
  const workload::Workload& workload_;
  exec::Runner& runner_;
  exec::Communicator& communicator_;
  std::vector<std::optional<double>> largest_;  // of those that were written
};

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

/// Where a run before stands that is gone on with; nothing where there is none, or it kept no state yet.
std::optional<exec::Checkpoint> begun_before(const exec::Checkpoints& checkpoints, const planner::Plan& plan,
                                             const TrainFlags& own, bool tells) {
  if (!own.resume) return std::nullopt;
  std::optional<exec::Checkpoint> begun = checkpoints.newest();
  if (!tells) return begun;
  if (!begun) {
    fmt::print(stderr, "the run kept no state yet: it begins anew\n");
    return begun;
  }
  for (const std::string& notice : begun->notices) fmt::print(stderr, "{}\n", notice);
  std::string standing;
  for (std::size_t task = 0; task < begun->tasks.size(); ++task)
    standing += fmt::format("{}{} {}", task == 0 ? "" : ", ", plan.workload.tasks[task].name, begun->tasks[task].taken);
  fmt::print(stderr, "going on from {}; steps taken: {}\n", begun->folder.string(), standing);
  return begun;
}

int execute(const planner::Plan& plan, const CommonFlags& flags, const TrainFlags& own) {
  const std::unique_ptr<exec::Communicator> communicator = communicator_for(plan);
  check_ranks_are_alike(plan, *communicator);
  set_thread_count(threads_of_rank(flags, plan.ranks()));
  const Data data = load_data(plan.workload, true);
  const exec::RunInput input{plan.fixed, plan.workload, data.samples, data.datasets};
  const std::unique_ptr<kernels::Device> device = make_device(backend_of(flags, plan));
  exec::Runner runner(input, *communicator, *device);
  const bool tells = communicator->rank() == 0;
  const std::filesystem::path out = flags.out;
  std::optional<FileLock> lock;
  if (tells) {
    std::filesystem::create_directories(out);
    lock.emplace(out / "lock");
  }
  exec::Checkpoints checkpoints(out / "checkpoints", plan);
  const std::optional<exec::Checkpoint> begun = begun_before(checkpoints, plan, own, tells);
  communicator->barrier();  // all have read
  std::optional<TrainingLog> log;
  std::optional<StatusKeeper> status;
  TensorBoardLog board(out / "tensorboard", plan.workload);
  RunInbox inbox(out, plan.workload);
  if (tells) {
    log.emplace(plan, data.samples, out / "metrics.jsonl", flags.quiet, begun ? &*begun : nullptr);
    write_file(out / "plan.json", planner::to_json(plan));
    if (!own.resume) {  // of a run before, which --overwrite gave up
      std::filesystem::remove_all(out / "adapters");
      std::filesystem::remove_all(out / "best");
      std::filesystem::remove_all(out / "checkpoints");
      std::filesystem::remove_all(out / "tensorboard");
    }
    for (std::size_t task = 0; begun && task < begun->tasks.size(); ++task)
      if (begun->tasks[task].ended != exec::Ended::no) inbox.forget(static_cast<planner::TaskIndex>(task));
    status.emplace(out, plan, data.samples, begun ? &*begun : nullptr, log->last_losses());
  }
  AdapterWriter adapters(out / "adapters", plan.workload, runner, *communicator);
  const InterruptGuard interrupts;
  exec::TrainOptions options;
  options.stop = &interrupts.asked();
  options.on_references = [&](planner::TaskIndex task, std::size_t pairs) {
    if (!flags.quiet)
      fmt::print(stderr, "{}: {} pairs are scored by the model as the task begins with it\n",
                 plan.workload.tasks[static_cast<std::size_t>(task)].name, pairs);
  };
  options.on_window = [&](const exec::WindowReport& report) {
    status->on_window(report);
    board.on_window(report);
    log->on_window(report, status->time_left());
  };
  options.on_evaluation = [&](const exec::EvaluationReport& report) {
    if (report.best) exec::write_adapter(out / "best", plan.workload, report.task, runner, *communicator);
    if (!tells) return;
    status->on_evaluation(report);
    board.on_evaluation(report);
    log->on_evaluation(report);
  };
  options.cancel = [&] { return inbox.next_cancelled(); };
  options.on_finished = [&](planner::TaskIndex task) {
    adapters.write(task);
    if (tells) inbox.forget(task);
  };
  options.on_notice = [](const std::string& notice) { fmt::print(stderr, "{}\n", notice); };
  if (begun) options.begun = &*begun;
  options.checkpoints = &checkpoints;
  options.checkpoint_steps = own.checkpoint_steps;
  options.checkpoint_seconds = 60 * own.checkpoint_minutes;
  const exec::TrainResult result = exec::train(plan, data.samples, runner, *communicator, options);
  adapters.write_others(result.diverged());
  const std::vector<Bytes> most_held = gather_bytes(device->most_held(), *communicator);
  bool written = result.diverged().empty();
  if (tells) {
    log->set_most_held(most_held);
    status->end(result.interrupted ? "interrupted" : "finished");
    written = tell_of_magnitudes(plan.workload, adapters.largest()) && written;
    write_timeline(flags.timeline_out.empty() ? out / "timeline.json" : std::filesystem::path(flags.timeline_out), plan,
                   result);
    if (flags.json) {
      fmt::print("{}", log->summary_json());
    } else {
      log->print_summary();
      fmt::print("adapters, metrics.jsonl and timeline.json are in {}\n", out.string());
    }
    if (result.interrupted)
      fmt::print(stderr,
                 "interrupted: the steps under way were finished, the adapters and the run's state are written; go on "
                 "with `braid train --resume --out {}`\n",
                 out.string());
  }
  if (result.interrupted && !interrupts.terminated()) return kInterrupted;
  return written ? kSuccess : kFailure;
}

/// Without a plan or workload the run's own plan is gone on with.
void prepare_to_resume(CommonFlags& flags) {
  const std::filesystem::path plan = std::filesystem::path(flags.out) / "plan.json";
  if (!std::filesystem::exists(plan))
    throw error("{}: holds no run to resume, as there is no plan.json; give the folder of a run, or leave out --resume",
                flags.out);
  if (flags.overwrite) throw error("--overwrite gives up the run that --resume goes on with; leave one out");
  if (flags.plan.empty() && flags.workload.empty()) flags.plan = plan.string();
}

}  // namespace

int run_train(const std::vector<std::string>& words) {
  CommonFlags flags;
  TrainFlags own;
  CommandLine line("braid train (--plan FILE | --workload FILE | --resume) --out DIR [options]", flags);
  line.add_plan();
  line.add_planning("braid");
  line.add_out("folder for adapters/, metrics.jsonl, timeline.json, plan.json and checkpoints/");
  namespace po = boost::program_options;
  line.add().add_options()(
      "resume", po::bool_switch(&own.resume),
      "go on with the run in --out from its last checkpoint: by its plan, or another that is given");
  line.add().add_options()("checkpoint-minutes", po::value(&own.checkpoint_minutes)->default_value(10),
                           "keep the run's state so often, and at its end; 0: at its end alone");
  line.add().add_options()("checkpoint-steps", po::value(&own.checkpoint_steps),
                           "keep it as well whenever a task has taken so many steps");
  line.add_threads();
  line.add_timeline();
  if (!line.parse(words)) return kSuccess;
  if (flags.out.empty()) throw error("--out is missing; give a folder for the adapters and metrics");
  if (!(own.checkpoint_minutes >= 0 && own.checkpoint_minutes < 1e6) || own.checkpoint_steps < 0)
    throw error("--checkpoint-minutes and --checkpoint-steps are 0 or more");
  if (own.resume) {
    prepare_to_resume(flags);
  } else if (exec::launched_ranks() == 0) {
    check_output_folder(flags.out, flags.overwrite);
  }
  if (exec::launched_ranks() == 0) check_writable(std::filesystem::path(flags.out) / "plan.json");
  if (!flags.backend.empty()) make_device(flags.backend);
  const planner::Plan plan = plan_from_flags(flags);
  if (!must_launch(plan, backend_of(flags, plan))) return execute(plan, flags, own);
  flags.passed_on = {"--checkpoint-minutes", fmt::format("{}", own.checkpoint_minutes), "--checkpoint-steps",
                     std::to_string(own.checkpoint_steps)};
  if (own.resume) flags.passed_on.emplace_back("--resume");
  return launch_with_plan("train", plan, flags);
}

}  // namespace braid::cli
