#include "cli/commands/train_run.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <ostream>
#include <thread>
#include <utility>

#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/parallel.h"
#include "cli/command.h"
#include "cli/support/backend.h"
#include "cli/support/machine_pace.h"
#include "cli/support/results.h"

namespace braid::cli {
namespace {

using planner::TaskIndex;

/// Numbers of adapters hardly pass 10 in training that goes well.
constexpr double kReasonableMagnitude = 1e3;
/// Between two looks for something to do.
constexpr std::chrono::milliseconds kIdle{50};

/// Warns of adapters whose numbers are beyond all reason; false where one was not written for them.
bool tell_of_magnitudes(const workload::Workload& workload, const std::vector<std::optional<double>>& largest) {
  bool written = true;
  for (std::size_t task = 0; task < largest.size(); ++task) {
    const std::string& name = workload.tasks[task].name;
    const double magnitude = largest[task].value_or(0);
    if (!std::isfinite(magnitude)) {
      fmt::print(stderr,
                 "{}: the adapter's numbers are not finite after the last step; it is not written (lower its lr?)\n",
                 name);
      written = false;
    } else if (magnitude > kReasonableMagnitude) {
      fmt::print(stderr,
                 "{}: the adapter's numbers reach {:.2g}, far beyond those of training that goes well; it is written, "
                 "but is hardly of use (lower its lr?)\n",
                 name, magnitude);
    }
  }
  return written;
}

/// Where a run before stands that is gone on with; nothing where there is none, or it kept no state yet.
std::optional<exec::Checkpoint> begun_before(const exec::Checkpoints& checkpoints, const planner::Plan& plan,
                                             bool tells) {
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

std::vector<int> all_ranks(const exec::Communicator& communicator) {
  std::vector<int> ranks(static_cast<std::size_t>(communicator.size()));
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

}  // namespace

TrainRun::TrainRun(planner::Plan plan, const CommonFlags& flags, const TrainFlags& own)
    : flags_(flags),
      own_(own),
      out_(flags.out),
      plan_(std::make_unique<planner::Plan>(std::move(plan))),
      communicator_(communicator_for(*plan_)),
      all_ranks_(communicator_->make_group(all_ranks(*communicator_))),
      tells_(communicator_->rank() == 0),
      data_(load_data(plan_->workload, true)) {
  check_ranks_are_alike(*plan_, *communicator_);
  set_thread_count(threads_of_rank(flags_, plan_->ranks()));
  device_ = make_device(flags_, *plan_);
}

namespace {

constexpr std::string_view kOfARun[] = {"adapters", "best",          "checkpoints",  "tensorboard",
                                        "inbox",    "metrics.jsonl", "changes.jsonl"};

}  // namespace

void check_given_up(const std::filesystem::path& out, const planner::Plan& plan, const CommonFlags& flags) {
  const bool of_a_run = std::filesystem::exists(out / "plan.json") || std::filesystem::exists(out / "status.json");
  std::vector<std::filesystem::path> read = {plan.workload.file, plan.workload.backbone_folder, flags.plan,
                                             flags.profile};
  for (const workload::Task& task : plan.workload.tasks) {
    read.insert(read.end(), {task.dataset, task.init_from});
    if (task.evaluation) read.push_back(task.evaluation->dataset);
  }
  for (const std::string_view name : kOfARun) {
    const std::filesystem::path lost = std::filesystem::weakly_canonical(out / name);
    if (!std::filesystem::exists(lost)) continue;
    if (!of_a_run)
      throw error("{}: is of no run of braid's, and --overwrite would delete it; give another --out", lost.string());
    for (const std::filesystem::path& file : read) {
      if (file.empty()) continue;
      const std::filesystem::path whole = std::filesystem::weakly_canonical(file);
      if (std::mismatch(lost.begin(), lost.end(), whole.begin(), whole.end()).first == lost.end())
        throw error("{}: is read by this run, and --overwrite would delete it; give another --out", file.string());
    }
  }
}

void TrainRun::begin_folder() const {
  for (const std::string_view of_a_run_before : kOfARun)
    std::filesystem::remove_all(out_ / of_a_run_before);  // which --overwrite gave up
}

void TrainRun::make_runner() {
  const SteadyClock::time_point began = SteadyClock::now();
  runner_ = std::make_unique<exec::Runner>(exec::RunInput{plan_->fixed, plan_->workload, data_.samples, data_.datasets},
                                           *communicator_, *device_, std::move(backbone_));
  if (!over_ && rates_.load_seconds == 0) {
    rates_.load_seconds = seconds_since(began);
    planner::Plan nothing;
    nothing.workload.backbone = plan_->workload.backbone;
    rates_.load_bytes = planner::change_of(nothing, *plan_).most_loaded;
  }
}

/// Goes on from there by the plan, which has a runner.
void TrainRun::take_over(std::optional<exec::Checkpoint> begun) {
  begun_ = std::move(begun);
  largest_.resize(plan_->workload.tasks.size());
  for (const TaskIndex task : plan_->fixed.tasks()) {
    const auto place = static_cast<std::size_t>(task);
    const bool ended = begun_ && (begun_->tasks[place].ended != exec::Ended::no ||
                                  begun_->tasks[place].taken >= data_.samples.steps(task));
    if (!ended) largest_[place].reset();  // it changes from here on
  }
  communicator_->barrier();  // all have read what they go on from
  if (!tells_) return;
  const SteadyClock::time_point began = SteadyClock::now();
  write_file(out_ / "plan.json", planner::to_json(*plan_));
  rates_.file_seconds = seconds_since(began);
  if (over_) changes_->done(over_->change);
  const exec::Checkpoint* from = begun_ ? &*begun_ : nullptr;
  changes_->begin(*plan_, data_, from);
  log_.emplace(*plan_, data_.samples, out_ / "metrics.jsonl", flags_.quiet, from);
  board_.emplace(out_ / "tensorboard", plan_->workload);
  status_.emplace(out_, *plan_, data_.samples, from, log_->last_losses());
}

void TrainRun::write_adapter(TaskIndex task) {
  const auto place = static_cast<std::size_t>(task);
  if (!runner_->adapters()[place]) return;  // it was paused, and is written
  if (const std::optional<double> largest = try_to_write("adapters", task)) largest_[place] = largest;
}

/// The largest magnitude; nothing, on all ranks alike, where there is no room for it.
std::optional<double> TrainRun::try_to_write(const std::string& folder, TaskIndex task) {
  double largest = 0;
  std::uint8_t written = 1;
  try {
    largest = exec::write_adapter(out_ / folder, plan_->workload, task, *runner_, *communicator_);
  } catch (const Failure& failure) {
    written = 0;
    fmt::print(stderr, "{}; the run goes on: make room\n", failure.what());
  }
  communicator_->broadcast(std::as_writable_bytes(std::span(&written, 1)));
  return written ? std::optional(largest) : std::nullopt;
}

exec::TrainResult TrainRun::run_by_plan() {
  exec::Checkpoints checkpoints(out_ / "checkpoints", *plan_, own_.checkpoints_kept);
  exec::TrainOptions options;
  options.stop = &interrupts_->asked();
  options.on_references = [&](TaskIndex task, std::size_t pairs) {
    if (!flags_.quiet)
      fmt::print(stderr, "{}: {} pairs are scored by the model as the task begins with it\n",
                 plan_->workload.tasks[static_cast<std::size_t>(task)].name, pairs);
  };
  options.before_begin = [&] {
    if (over_) {
      tell_cost(*std::exchange(over_, std::nullopt));
    } else if (rates_.other_seconds == 0) {  // the run's first window
      rates_.other_seconds = std::max(0.0, seconds_since(last_window_) - rates_.file_seconds);
    }
  };
  options.on_window = [&](const exec::WindowReport& report) {
    last_window_ = SteadyClock::now();
    changes_->on_window(report);
    status_->on_window(report);
    board_->on_window(report);
    log_->on_window(report, status_->time_left());
  };
  options.on_evaluation = [&](const exec::EvaluationReport& report) {
    if (report.best) try_to_write("best", report.task);
    if (!tells_) return;
    changes_->on_evaluation(report);
    status_->on_evaluation(report);
    board_->on_evaluation(report);
    log_->on_evaluation(report);
    last_window_ = SteadyClock::now();
  };
  options.on_ended = [&](TaskIndex task, exec::Ended how) {
    if (!tells_) return;
    changes_->on_ended(task, how);
    status_->on_ended(task, how);
    log_->on_ended(task, how);
  };
  options.on_held = [&](TaskIndex task) {
    if (!tells_) return;
    changes_->on_held(task);
    status_->on_held(task);
  };
  options.cancel = [&] { return changes_->next_cancelled(); };
  options.on_finished = [&](TaskIndex task) {
    write_adapter(task);
    if (tells_) changes_->on_ended(task);
  };
  options.on_notice = [](const std::string& notice) { fmt::print(stderr, "{}\n", notice); };
  if (begun_) options.begun = &*begun_;
  options.checkpoints = &checkpoints;
  options.checkpoint_steps = own_.checkpoint_steps;
  options.checkpoint_seconds = 60 * own_.checkpoint_minutes;
  double seconds_before = 0;  // of keeping state, before a change is asked for
  Bytes bytes_before = 0;
  options.change = [&] {
    seconds_before = checkpoints.spent_seconds(), bytes_before = checkpoints.spent_bytes();
    return changes_->ready();
  };
  exec::TrainResult result = exec::train(*plan_, data_.samples, *runner_, *communicator_, options);
  rates_.state_seconds += seconds_before;
  rates_.state_bytes += bytes_before;
  seconds_of_change_ = checkpoints.spent_seconds() - seconds_before;
  bytes_of_change_ = checkpoints.spent_bytes() - bytes_before;
  return result;
}

/// Of rank 0, on all ranks, which sleep while they wait for it.
std::optional<RunChange> TrainRun::tell_all(std::optional<RunChange> change) {
  std::string text = change ? planner::to_json(change->plan) : "";
  const std::vector<double> mine = {static_cast<double>(text.size())};
  std::vector<double> all(static_cast<std::size_t>(communicator_->size()));
  const std::vector<int> counts(all.size(), 1);
  const std::unique_ptr<exec::Request> request = all_ranks_->all_gather(mine, counts, all);
  while (!request->done()) std::this_thread::sleep_for(kIdle);
  text.resize(static_cast<std::size_t>(all.front()));
  if (text.empty()) return std::nullopt;
  communicator_->broadcast(std::as_writable_bytes(std::span(text)));
  if (tells_) return change;
  change.emplace();
  change->plan = planner::plan_from(text, "the plan that rank 0 made");
  return change;
}

/// What was asked for, or is being planned.
std::optional<RunChange> TrainRun::next_change() {
  return tell_all(tells_ ? changes_->take(&interrupts_->asked()) : std::nullopt);
}

/// Until something is asked for, or the run is told to end.
std::optional<RunChange> TrainRun::wait_for_change() {
  std::optional<RunChange> change;
  if (tells_) {
    status_->end("waiting");
    if (!flags_.quiet) fmt::print(stderr, "all tasks have ended; waiting for more in {}\n", (out_ / "inbox").string());
    while (!change && !interrupts_->asked()) {
      std::this_thread::sleep_for(kIdle);
      change = changes_->take(&interrupts_->asked());
    }
    last_window_ = SteadyClock::now();
  }
  return tell_all(std::move(change));
}

/// The runner of the plan before is gone, its state on the disk.
void TrainRun::go_over(RunChange change) {
  GoingOver over{{}, {}, {}, last_window_};
  over.of_plans = planner::change_of(*plan_, change.plan);
  over.cost = predict_cost(over.of_plans, rates_);
  if (runner_) {
    backbone_ = std::move(*runner_).release_backbone();
    runner_.reset();
  }
  std::vector<workload::Dataset> known = std::move(data_.datasets);
  std::ranges::move(change.joined, std::back_inserter(known));
  change.joined.clear();
  auto next = std::make_unique<planner::Plan>(std::move(change.plan));
  planner::check_data_hashes(*next, plan_->data_hashes);  // on every host
  data_ = load_data(next->workload, true, std::move(known));
  const exec::Checkpoints checkpoints(out_ / "checkpoints", *next);
  std::optional<exec::Checkpoint> begun = checkpoints.newest();
  for (std::size_t task = 0; begun && task < next->taken.size(); ++task) next->taken[task] = begun->tasks[task].taken;
  over.change = std::move(change);
  over_ = std::move(over);
  plan_ = std::move(next);
  make_runner();
  take_over(std::move(begun));
}

/// A window of the new plan begins.
void TrainRun::tell_cost(GoingOver over) {
  over.cost.measured = seconds_since(over.began);
  rates_.state_seconds += seconds_of_change_;
  rates_.state_bytes += bytes_of_change_;
  rates_.other_seconds = std::max(0.0, over.cost.measured - over.cost.of_parts);
  if (!tells_) return;
  const auto layers = static_cast<std::int64_t>(runner_->loaded_layers());
  nlohmann::ordered_json line = {{"what", over.change.what},
                                 {"planning_seconds", over.change.planning_seconds},
                                 {"predicted_seconds", over.cost.predicted},
                                 {"measured_seconds", over.cost.measured},
                                 {"state_bytes", over.of_plans.adapters},
                                 {"loaded_bytes", over.of_plans.loaded},
                                 {"loaded_layers_of_rank_0", layers}};
  nlohmann::ordered_json steps;
  for (std::size_t task = 0; task < plan_->taken.size(); ++task)
    steps[plan_->workload.tasks[task].name] = plan_->taken[task];
  line["steps_taken"] = std::move(steps);
  told_changes_->append(line.dump() + "\n");
  if (flags_.quiet) return;
  fmt::print(stderr, "{}: planned in {} beside training; going over took {}, predicted {}{}\n",
             fmt::join(over.change.what, ", "), duration(over.change.planning_seconds), duration(over.cost.measured),
             duration(over.cost.predicted), layers > 0 ? fmt::format("; {} layers were loaded", layers) : "");
}

/// What has not been written of the tasks that go no further: all at the run's end, those that pause at a change.
void TrainRun::write_adapters(const exec::TrainResult& result, const std::optional<RunChange>& change) {
  const std::set<TaskIndex> diverged = result.diverged();
  const std::set<TaskIndex> then = change ? change->plan.fixed.tasks() : std::set<TaskIndex>();
  for (const TaskIndex task : plan_->fixed.tasks()) {
    const bool written = largest_[static_cast<std::size_t>(task)].has_value();
    if (!diverged.contains(task) && !then.contains(task) && !written) write_adapter(task);
  }
}

int TrainRun::run() {
  make_runner();  // before anything is written
  if (tells_) {
    std::filesystem::create_directories(out_);
    lock_.emplace(out_ / "lock");
    if (!own_.resume) begin_folder();
    changes_.emplace(out_);
    told_changes_.emplace(out_ / "changes.jsonl");
  }
  std::optional<exec::Checkpoint> begun;
  if (own_.resume) begun = begun_before(exec::Checkpoints(out_ / "checkpoints", *plan_), *plan_, tells_);
  if (!begun && std::ranges::any_of(plan_->taken, [](std::int64_t steps) { return steps > 0; }))
    throw error("{}: the plan goes on with a run that was under way, whose state is not there; plan the workload anew",
                own_.resume ? (out_ / "plan.json").string() : flags_.plan);
  last_window_ = SteadyClock::now();
  take_over(std::move(begun));
  interrupts_.emplace();
  exec::TrainResult result;
  std::optional<RunChange> change;
  if (own_.resume) change = next_change();  // what was asked for while nobody was at work
  for (;;) {
    if (!change) {
      result = run_by_plan();
      if (!result.interrupted && result.kept) change = next_change();
      write_adapters(result, change);
      if (!change && !result.interrupted && result.kept && own_.stay) change = wait_for_change();
    }
    if (!change) break;
    go_over(*std::exchange(change, std::nullopt));
  }
  const int status = finish(result);
  if (!result.interrupted) explain_times();
  return status;
}

/// Where the steps of the last plan took other than it predicts; of another machine's profile nobody expects it.
void TrainRun::explain_times() {
  std::uint8_t unexplained = 0;
  if (tells_ && plan_->profile.machine == device_->machine())
    unexplained = std::abs(log_->prediction_error()) > kUnexplained;
  communicator_->broadcast(std::as_writable_bytes(std::span(&unexplained, 1)));
  if (unexplained == 0) return;
  runner_.reset();  // whose memory the reference pass takes
  explain_by_pace(*plan_, flags_.quiet, *communicator_, *device_);
}

void TrainRun::write_timeline(const exec::TrainResult& result) const {
  planner::Program joined;
  planner::Timeline timeline;
  for (const exec::RecordedWindow& recorded : result.recorded)
    planner::append_window(recorded.program, recorded.timeline, joined, timeline);
  timeline.shift(-timeline.begin());
  const std::vector<std::string> names = task_names(plan_->workload);
  const std::filesystem::path file =
      flags_.timeline_out.empty() ? out_ / "timeline.json" : std::filesystem::path(flags_.timeline_out);
  write_file(file, [&](std::ostream& out) { planner::write_trace(joined, timeline, names, out); });
}

int TrainRun::finish(const exec::TrainResult& result) {
  const std::vector<Bytes> most_held = gather_bytes(device_->most_held(), *communicator_);
  bool written = result.diverged().empty();
  if (tells_) {
    log_->set_most_held(most_held);
    status_->end(result.interrupted ? "interrupted" : "finished");
    written = tell_of_magnitudes(plan_->workload, largest_) && written;
    for (const TaskIndex task : plan_->fixed.tasks()) {
      if (largest_[static_cast<std::size_t>(task)] || result.diverged().contains(task)) continue;
      fmt::print(stderr,
                 "{}: its adapter could not be written; make room and go on with `braid train --resume --out {}`\n",
                 plan_->workload.tasks[static_cast<std::size_t>(task)].name, out_.string());
      written = false;
    }
    if (!result.kept) {
      fmt::print(stderr, "{}: the run's last state could not be kept, so --resume takes its last steps again\n",
                 out_.string());
      written = false;
    }
    if (!log_->flush() || !told_changes_->append("")) {
      fmt::print(stderr, "{}: lines of metrics are missing, as they could not be written\n", out_.string());
      written = false;
    }
    write_timeline(result);
    if (flags_.json) {
      fmt::print("{}", log_->summary_json());
    } else {
      log_->print_rankings(result.ended);
      log_->print_summary();
      fmt::print("adapters, metrics.jsonl and timeline.json are in {}\n", out_.string());
    }
    for (const TaskStatus& task : status_->tasks())
      if (task.state == "paused")
        fmt::print(stderr,
                   "{}: is paused; `braid task resume {} {}` and `braid train --resume --out {}` go on with it\n",
                   task.name, out_.string(), task.name, out_.string());
    if (result.interrupted)
      fmt::print(stderr,
                 "interrupted: the steps under way were finished, the adapters and the run's state are written; go on "
                 "with `braid train --resume --out {}`\n",
                 out_.string());
  }
  if (result.interrupted && !interrupts_->terminated()) return kInterrupted;
  return written ? kSuccess : kFailure;
}

}  // namespace braid::cli
