#include "cli/support/run_changes.h"

#include <algorithm>

#include "base/error.h"
#include "base/file.h"
#include "base/parallel.h"
#include "cli/support/replan.h"
#include "planner/window/predict.h"

namespace braid::cli {
namespace {

using planner::TaskIndex;
using Kind = RunRequest::Kind;

/// Seconds that a plan which nobody asked for must spare.
constexpr double kLeastGain = 1;

/// What `on_progress` throws where nobody waits for the plan any more.
struct GivenUp {};

TaskIndex task_named(const workload::Workload& workload, const std::string& name) {
  const auto found = std::ranges::find(workload.tasks, name, &workload::Task::name);
  return found == workload.tasks.end() ? planner::kNone : static_cast<TaskIndex>(found - workload.tasks.begin());
}

}  // namespace

RunChanges::~RunChanges() {
  given_up_ = true;
}

void RunChanges::begin(const planner::Plan& plan, const Data& data, const exec::Checkpoint* begun) {
  plan_ = &plan;
  data_ = &data;
  const std::size_t tasks = plan.workload.tasks.size();
  standing_ = {plan.taken, {}, plan.paused, {}};
  standing_.taken.resize(tasks, 0);
  standing_.evaluations.resize(tasks);
  training_ = plan.fixed.tasks();
  without_plan_.clear();
  for (std::size_t task = 0; begun && task < tasks; ++task) {
    const exec::TaskState& state = begun->tasks[task];
    standing_.taken[task] = state.taken;
    standing_.evaluations[task] = state.evaluations;
    if (state.ended != exec::Ended::no) standing_.ended[static_cast<TaskIndex>(task)] = state.ended;
  }
}

std::set<TaskIndex> RunChanges::live() const {
  return standing_.live(plan_->workload, data_->samples, training_);
}

void RunChanges::on_window(const exec::WindowReport& report) {
  for (const exec::StepMetrics& step : report.steps) standing_.taken[static_cast<std::size_t>(step.task)] = step.step;
  for (const TaskIndex task : report.diverged) standing_.ended[task] = exec::Ended::diverged;
  if (report.cancelled) standing_.ended[*report.cancelled] = exec::Ended::cancelled;
}

void RunChanges::on_evaluation(const exec::EvaluationReport& report) {
  standing_.evaluations[static_cast<std::size_t>(report.task)].push_back({report.step, report.loss.loss});
}

void RunChanges::on_ended(TaskIndex task, exec::Ended how) {
  if (how != exec::Ended::no) standing_.ended[task] = how;
  if (how == exec::Ended::outranked) ++outranked_;
  for (auto one = cancelled_.begin(); one != cancelled_.end();) {
    if (one->first == task) inbox_.done(one->second);
    one = one->first == task ? cancelled_.erase(one) : one + 1;
  }
}

std::optional<TaskIndex> RunChanges::next_cancelled() {
  hear(false);
  while (!cancelled_.empty() && has_ended(cancelled_.front().first)) {
    inbox_.done(cancelled_.front().second);
    cancelled_.pop_front();
  }
  if (cancelled_.empty()) return std::nullopt;
  return cancelled_.front().first;
}

void RunChanges::hear(bool now) {
  for (const RunRequest& request : inbox_.look(now)) hear(request);
}

/// A request that the table of tasks as it stands refuses is refused at once.
void RunChanges::hear(const RunRequest& request) {
  if (request.kind == Kind::join) return pending_.push_back(request);
  const TaskIndex task = task_named(plan_->workload, request.task);
  if (task == planner::kNone) return inbox_.reject(request, fmt::format("the run has no task {}", request.task));
  if (has_ended(task)) return inbox_.reject(request, fmt::format("task {} has ended", request.task));
  if (request.kind == Kind::cancel) return cancelled_.push_back({task, request});
  pending_.push_back(request);
}

void RunChanges::plan_pending() {
  if (planning_.valid() || ready_) return;
  const std::set<TaskIndex> live = this->live();
  const bool places = !std::ranges::includes(training_, live) && live != without_plan_;
  if (pending_.empty() && outranked_ == 0 && !places) return;
  Order order{*plan_, data_->samples, standing_, training_, std::exchange(pending_, {}), std::exchange(outranked_, 0)};
  spared_ = order.requests.empty() && !places;
  if (spared_ && live.empty()) return;
  planning_ = std::async(std::launch::async, [this, order = std::move(order)] {
    set_thread_count(1);  // beside training
    return outcome_of(order);
  });
}

void RunChanges::settle() {
  Outcome outcome = planning_.get();
  for (const auto& [request, reason] : outcome.rejected) inbox_.reject(request, reason);
  ready_ = std::move(outcome.change);
  if (outcome.no_plan.empty()) return;
  without_plan_ = live();
  fmt::print(stderr, "tasks that have a place in their search cannot train: {}\n", outcome.no_plan);
}

bool RunChanges::ready() {
  hear(false);
  plan_pending();
  if (planning_.valid() && planning_.wait_for(std::chrono::seconds(0)) == std::future_status::ready) settle();
  return ready_.has_value();
}

std::optional<RunChange> RunChanges::take(const std::atomic<bool>* stop) {
  hear(true);
  plan_pending();
  if (planning_.valid() && spared_ && live().empty()) {  // too late for it
    given_up_ = true;
    planning_.get();
    given_up_ = false;
    plan_pending();
  }
  while (planning_.valid()) {
    if (stop->load()) {
      given_up_ = true;
      return std::nullopt;
    }
    if (planning_.wait_for(std::chrono::milliseconds(20)) != std::future_status::ready) continue;
    settle();
    plan_pending();
  }
  return std::exchange(ready_, std::nullopt);
}

void RunChanges::done(const RunChange& change) {
  for (const RunRequest& request : change.requests) inbox_.done(request);
}

RunChanges::Outcome RunChanges::outcome_of(const Order& order) const {
  if (order.requests.empty()) return unasked_outcome_of(order);
  Outcome outcome;
  workload::Workload whole = order.plan.workload;
  std::set<TaskIndex> paused = order.standing.paused;
  RunChange change;
  std::vector<std::pair<RunRequest, std::size_t>> joins;  // with how many tasks
  const auto tokenizer = workload::make_tokenizer(whole.backbone_folder, whole.backbone);
  const auto live = [&] { return live_of(order, whole, paused, change.joined); };
  const auto join = [&](const RunRequest& request) {
    const std::vector<workload::Task> more = workload::read_more_tasks(request.file, whole.file.parent_path(), whole);
    std::vector<workload::Dataset> data;
    for (const workload::Task& task : more) {
      if (task.lengths) throw error("task '{}' has lengths in place of data; give it a dataset to train on", task.name);
      data.push_back(workload::load_task_data(task, *tokenizer, whole.backbone, whole.backbone_folder));
    }
    for (std::size_t i = 0; i < more.size(); ++i) {
      whole.tasks.push_back(more[i]);
      change.joined.push_back(std::move(data[i]));
      change.what.push_back(more[i].name + " joins");
    }
    joins.emplace_back(request, more.size());
  };
  const auto apply = [&](const RunRequest& request) {
    if (request.kind == Kind::join) return join(request);
    const TaskIndex task = task_named(whole, request.task);
    if (request.kind == Kind::priority) {
      if (order.plan.policy != "mlora")
        throw error("no task waits by priority under {}; mlora alone has some wait", order.plan.policy);
      whole.tasks[static_cast<std::size_t>(task)].priority = RunInbox::priority_of(read_file(request.file));
      change.what.push_back(
          fmt::format("{} has priority {}", request.task, whole.tasks[static_cast<std::size_t>(task)].priority));
      return;
    }
    const bool pauses = request.kind == Kind::pause;
    if (paused.contains(task) == pauses)
      throw error("task {} is {} already", request.task, pauses ? "paused" : "running");
    pauses ? (void)paused.insert(task) : (void)paused.erase(task);
    if (pauses && live().empty()) {
      paused.erase(task);
      throw error("task {} is the only one that runs; end the run with SIGTERM, which keeps its state", request.task);
    }
    change.what.push_back(request.task + (pauses ? " pauses" : " goes on"));
  };
  for (const RunRequest& request : order.requests) {
    try {
      apply(request);
      change.requests.push_back(request);
    } catch (const std::exception& refused) {
      outcome.rejected.emplace_back(request, refused.what());
    }
  }
  while (!change.requests.empty()) {
    try {
      RunChange made = planned(order, whole, live(), change.joined);
      made.plan.paused = paused;
      made.joined = std::move(change.joined);
      made.requests = std::move(change.requests);
      made.what = std::move(change.what);
      outcome.change = std::move(made);
      return outcome;
    } catch (const GivenUp&) {
      return outcome;
    } catch (const std::exception& refused) {
      // What joined last is left out, and whatever else was asked for where none did.
      if (joins.empty()) {
        for (const RunRequest& request : change.requests) outcome.rejected.emplace_back(request, refused.what());
        return outcome;
      }
      const auto [request, tasks] = joins.back();
      joins.pop_back();
      outcome.rejected.emplace_back(request, refused.what());
      std::erase_if(change.requests, [&file = request.file](const RunRequest& one) { return one.file == file; });
      for (std::size_t i = 0; i < tasks; ++i) {
        std::erase(change.what, whole.tasks.back().name + " joins");
        whole.tasks.pop_back();
        change.joined.pop_back();
      }
    }
  }
  return outcome;
}

/// Tasks were outranked, or have places in their search.
RunChanges::Outcome RunChanges::unasked_outcome_of(const Order& order) const {
  const workload::Workload& whole = order.plan.workload;
  const std::set<TaskIndex> live = live_of(order, whole, order.standing.paused, {});
  std::vector<std::string> what;
  for (const TaskIndex task : live)
    if (!order.training.contains(task))
      what.push_back(whole.tasks[static_cast<std::size_t>(task)].name + " has a place");
  const bool places = !what.empty();
  if (order.outranked > 0) what.push_back(fmt::format("{} tasks are outranked", order.outranked));
  Outcome outcome;
  try {
    RunChange made = planned(order, whole, live, {});
    made.what = std::move(what);
    if (places || pays(order, live, made.plan)) outcome.change = std::move(made);
  } catch (const GivenUp&) {
  } catch (const std::exception& refused) {  // the run goes on as it does
    if (places) outcome.no_plan = refused.what();
  }
  return outcome;
}

/// Seconds of a step of every live task, by the plan that runs.
double RunChanges::step_seconds_now(const Order& order, const std::set<TaskIndex>& live) const {
  std::set<TaskIndex> stopped;
  for (const TaskIndex task : order.plan.fixed.tasks())
    if (!live.contains(task)) stopped.insert(task);
  const costmodel::CostModel cost(order.plan.profile);
  planner::ClockLatency latency(cost, order.plan.workload.backbone);
  return planner::predict(order.plan.fixed, {order.plan.workload, order.samples, std::move(stopped)}, latency,
                          judge_by_replay())
      .step_seconds;
}

/// Whether the steps that are left are done so much sooner that going over pays.
bool RunChanges::pays(const Order& order, const std::set<TaskIndex>& live, const planner::Plan& plan) const {
  std::int64_t steps = 0;
  for (const TaskIndex task : live)
    steps = std::max(steps, order.samples.steps(task) - order.standing.taken[static_cast<std::size_t>(task)]);
  return static_cast<double>(steps) * (step_seconds_now(order, live) - plan.predicted.step_seconds) > kLeastGain;
}

RunChange RunChanges::planned(const Order& order, const workload::Workload& whole, const std::set<TaskIndex>& live,
                              const std::vector<workload::Dataset>& joined) const {
  std::vector<std::int64_t> taken = order.standing.taken;
  taken.resize(whole.tasks.size(), 0);
  const auto sizes = [&](TaskIndex task) { return sizes_of(order, joined, task); };
  RunChange change;
  change.plan = replan({order.plan, whole, live, std::move(taken), sizes, [this](double) {
                          if (given_up_) throw GivenUp();
                        }});
  change.planning_seconds = change.plan.planning_seconds;
  return change;
}

/// Of the table of tasks as it stands, or of those that join it.
TaskSizes RunChanges::sizes_of(const Order& order, const std::vector<workload::Dataset>& joined, TaskIndex task) {
  const std::size_t known = order.plan.workload.tasks.size();
  if (static_cast<std::size_t>(task) < known) return {order.samples.sizes(task), order.samples.held_out(task)};
  const workload::Dataset& dataset = joined[static_cast<std::size_t>(task) - known];
  return {workload::sample_sizes(dataset), workload::held_out_sizes(dataset)};
}

/// The tasks of the whole table that are to train.
std::set<TaskIndex> RunChanges::live_of(const Order& order, const workload::Workload& whole,
                                        const std::set<TaskIndex>& paused,
                                        const std::vector<workload::Dataset>& joined) {
  RunStanding standing = order.standing;
  standing.taken.resize(whole.tasks.size(), 0);
  standing.evaluations.resize(whole.tasks.size());
  standing.paused = paused;
  std::vector<std::vector<workload::SampleSize>> sizes, held_out;
  for (TaskIndex task = 0; task < static_cast<TaskIndex>(whole.tasks.size()); ++task) {
    TaskSizes of_task = sizes_of(order, joined, task);
    sizes.push_back(std::move(of_task.learned));
    held_out.push_back(std::move(of_task.held_out));
  }
  const workload::SampleIndex samples(whole.tasks, std::move(sizes), std::move(held_out));
  return standing.live(whole, samples, order.training);
}

}  // namespace braid::cli
