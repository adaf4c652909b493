#include "exec/trainer.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <optional>

#include "base/error.h"
#include "exec/optimizer.h"
#include "exec/window_exchange.h"
#include "exec/window_feed.h"
#include "planner/window/predict.h"

namespace braid::exec {

using planner::InstructionId;
using planner::TaskIndex;

namespace {

/// Before clipping. Added in layer order, so that it does not matter how layers lie on stages.
double gradient_norm(const StepReport& step) {
  return std::sqrt(std::accumulate(step.squared_norms.begin(), step.squared_norms.end(), 0.0));
}

StepMetrics metrics_of(const planner::WindowStep& step, const StepReport& taken, const workload::Workload& workload,
                       const workload::SampleIndex& samples, double seconds) {
  const workload::Optimizer& optimizer = workload.tasks[static_cast<std::size_t>(step.task)].optimizer;
  std::int64_t tokens = 0;
  for (const workload::SampleRef& sample : samples.global_batch(step.task, step.global_batch)) tokens += sample.tokens;
  return {step.task,
          step.global_batch + 1,
          taken.loss.loss,
          learning_rate(optimizer, step.global_batch, samples.steps(step.task)),
          gradient_norm(taken),
          tokens,
          seconds,
          taken.loss.margin,
          taken.loss.accuracy};
}

template <typename T>
std::string to_bytes(const std::vector<T>& items) {
  return {reinterpret_cast<const char*>(items.data()), items.size() * sizeof(T)};
}

template <typename T>
void append_from_bytes(const std::string& bytes, std::vector<T>& items) {
  const std::size_t before = items.size();
  items.resize(before + bytes.size() / sizeof(T));
  std::memcpy(items.data() + before, bytes.data(), bytes.size());
}

planner::Timeline gather_timeline(const planner::Timeline& mine, Communicator& communicator) {
  planner::Timeline timeline;
  for (const std::string& part : communicator.gather(to_bytes(mine.events))) append_from_bytes(part, timeline.events);
  for (const std::string& part : communicator.gather(to_bytes(mine.memory))) append_from_bytes(part, timeline.memory);
  return timeline;
}

class Training {
 public:
  Training(const planner::Plan& plan, const workload::SampleIndex& samples, Runner& runner, Communicator& communicator,
           const TrainOptions& options)
      : plan_(plan),
        planned_(plan.fixed.tasks()),
        samples_(samples),
        runner_(runner),
        communicator_(communicator),
        options_(options),
        all_ranks_(group_of_all(communicator)),
        windows_(planner::window_count(plan.fixed, planner::input_of(plan, samples))),
        taken_before_(plan.taken),
        taken_(plan.taken.empty() ? std::vector<std::int64_t>(plan.workload.tasks.size(), 0) : plan.taken),
        kept_(taken_),
        evaluations_(plan.workload, samples) {}

  TrainResult run() {
    std::vector<std::int64_t> chosen = options_.windows;
    runner_.score_references(options_.windows, communicator_.rank() == 0 ? options_.on_references : nullptr);
    const std::int64_t first_window = options_.begun ? begin_from(*options_.begun) : 0;
    if (chosen.empty() && first_window < windows_) {
      chosen.resize(static_cast<std::size_t>(windows_ - first_window));
      std::iota(chosen.begin(), chosen.end(), first_window);
    }
    last_kept_ = SteadyClock::now();
    const bool evaluates = options_.windows.empty();
    if (evaluates) evaluate_due();
    hold();
    for (auto first = chosen.begin(); first != chosen.end() && !ends();) {
      auto last = first + 1;
      while (last != chosen.end() && *last == *(last - 1) + 1 && !(evaluates && due_before(*last))) ++last;
      run_consecutive(*first, *(last - 1) + 1);
      if (evaluates && !result_.interrupted) evaluate_due();
      hold();
      first = last;
      if (!result_.changes || result_.interrupted || !options_.checkpoints) continue;
      keep();
      if (result_.kept) continue;
      // Who goes over reads that state: it goes on by this plan until there is room.
      result_.changes = false;
      first = chosen.begin() + (last_told_ + 1 - chosen.front());
    }
    if (options_.checkpoints && unkept_) keep();
    result_.taken = taken_;
    for (RecordedWindow& recorded : result_.recorded)
      recorded.timeline = gather_timeline(recorded.timeline, communicator_);
    return std::move(result_);
  }

 private:
  /// A window that has run here and not been told.
  struct Untold {
    std::int64_t window = 0;
    bool begins = true;
    std::vector<planner::WindowStep> steps;
    std::int64_t computed_tokens = 0;
    double backbone_flops = 0;
    std::size_t recorded = 0;  ///< its place among those + 1; 0: it is not
    std::unique_ptr<WindowExchange> exchange;
  };

  bool ends() const { return result_.interrupted || result_.changes; }

  /// Takes the state of a run before over; returns the window that comes next.
  std::int64_t begin_from(const Checkpoint& begun) {
    restore(begun, plan_.workload, runner_);
    if (options_.checkpoints) options_.checkpoints->begin_from(begun);
    for (std::size_t task = 0; task < taken_.size(); ++task) {
      taken_[task] = begun.tasks[task].taken;
      evaluations_.set(static_cast<TaskIndex>(task), begun.tasks[task].evaluations);
      if (begun.tasks[task].ended == Ended::no) continue;
      result_.ended[static_cast<TaskIndex>(task)] = begun.tasks[task].ended;
      runner_.stop(static_cast<TaskIndex>(task));
    }
    kept_ = taken_;
    const planner::WindowInput whole = planner::input_of(plan_, samples_);
    for (std::int64_t window = 0; window <= windows_; ++window) {
      const std::vector<std::int64_t> before = planner::steps_before(plan_.fixed, whole, window);
      bool same = true;
      for (std::size_t task = 0; task < taken_.size(); ++task)
        same = same && (before[task] == taken_[task] || result_.ended.contains(static_cast<TaskIndex>(task)));
      if (same) return window;
    }
    taken_before_ = taken_;
    windows_ = planner::window_count(plan_.fixed, {plan_.workload, samples_, ended_tasks(), 0, taken_before_});
    return 0;
  }

  /// The run's state, on the disk.
  void keep() {
    try {
      options_.checkpoints->write(taken_, result_.ended, evaluations_, runner_, communicator_);
      result_.kept = true;
    } catch (const Failure& failure) {
      result_.kept = false;
      if (options_.on_notice && communicator_.rank() == 0)
        options_.on_notice(
            fmt::format("{}; the run goes on, and its state is kept again later: make room", failure.what()));
    }
    kept_ = taken_;
    unkept_ = false;
    last_kept_ = SteadyClock::now();
    asked_to_keep_ = false;
  }

  /// Whether a task that the plan runs is to be evaluated when that window begins.
  bool due_before(std::int64_t window) const {
    if (std::ranges::none_of(plan_.workload.tasks,
                             [](const workload::Task& task) { return task.evaluation.has_value(); }))
      return false;
    const std::vector<std::int64_t> taken =
        planner::steps_before(plan_.fixed, {plan_.workload, samples_, ended_tasks(), 0, taken_before_}, window);
    for (std::size_t task = 0; task < taken.size(); ++task)
      if (is_due(static_cast<TaskIndex>(task), taken[task])) return true;
    return false;
  }
  bool is_due(TaskIndex task, std::int64_t taken) const {
    return planned_.contains(task) && !result_.ended.contains(task) && !held_.contains(task) &&
           evaluations_.due(task, taken);
  }

  /// With nothing under way, on all ranks alike.
  void evaluate_due() {
    EndedTasks ending;
    bool any = false;
    for (std::size_t place = 0; place < taken_.size(); ++place) {
      const auto task = static_cast<TaskIndex>(place);
      if (!is_due(task, taken_[place])) continue;
      EvaluationReport report;
      report.task = task;
      report.step = taken_[place];
      const SteadyClock::time_point began = SteadyClock::now();
      report.loss = runner_.evaluate(task);
      report.seconds = seconds_since(began);
      for (const workload::SampleSize& sample : samples_.held_out(task)) report.tokens += sample.tokens;
      const std::optional<Evaluated> before = evaluations_.best(task);
      evaluations_.add(task, {report.step, report.loss.loss});
      unkept_ = true;
      report.best = evaluations_.best(task) != before;
      any = true;
      if (report.step < samples_.steps(task) && evaluations_.out_of_patience(task)) ending[task] = Ended::early;
      if (options_.on_evaluation) options_.on_evaluation(report);
    }
    if (!any) return;
    EndedTasks ended = result_.ended;
    ended.insert(ending.begin(), ending.end());
    for (const TaskIndex task : evaluations_.outranked(ended))
      if (!ended.contains(task) && taken_[static_cast<std::size_t>(task)] < samples_.steps(task))
        ending[task] = Ended::outranked;
    if (ending.empty()) return;
    for (const auto& [task, how] : ending) {
      result_.ended[task] = how;
      runner_.stop(task);
      if (options_.on_ended) options_.on_ended(task, how);
    }
    // As of tasks that are cancelled.
    if (options_.checkpoints) keep();
    for (const auto& [task, how] : ending)
      if (options_.on_finished) options_.on_finished(task);
  }

  /// What has come to a rung before others waits for them. Likewise.
  void hold() {
    for (const TaskIndex task : evaluations_.held(result_.ended)) {
      if (!planned_.contains(task) || !held_.insert(task).second) continue;
      runner_.stop(task);
      if (options_.on_held) options_.on_held(task);
    }
  }

  /// The same on all ranks.
  bool keeps_now() const {
    if (!options_.checkpoints) return false;
    bool due = asked_to_keep_;
    for (std::size_t task = 0; task < taken_.size(); ++task)
      due |= options_.checkpoint_steps > 0 && taken_[task] - kept_[task] >= options_.checkpoint_steps;
    return due;
  }

  /// What a window left behind is told when the next one has run, or at once where the pipeline has drained.
  void run_consecutive(std::int64_t first, std::int64_t last) {
    WindowFeed feed(plan_.fixed, {plan_.workload, samples_, ended_tasks(), 0, taken_before_}, first, last,
                    plan_.profile, communicator_);
    std::optional<Untold> untold;
    while (std::optional<WindowPart> part = feed.next()) {
      planner::Slice& slice = part->slice;
      const bool drains = planner::is_empty(slice.program.after);
      if (slice.begins) {
        if (options_.before_begin) options_.before_begin();
        communicator_.barrier();
      }
      RunReport report = runner_.run(slice.program, part->ahead, part->turns);
      if (untold) tell(*untold, feed);
      untold = exchange(std::move(slice), std::move(report));
      if (!drains && !keeps_after(*untold)) continue;
      tell(*untold, feed);
      untold.reset();
      if (keeps_now()) keep();
      for (const TaskIndex task : std::exchange(cancelled_, {}))
        if (options_.on_finished) options_.on_finished(task);
    }
  }

  /// Whether the state is to be kept once that window has been told. What its ranks have begun of the window that comes
  /// next is begun again by whoever goes on from there.
  bool keeps_after(const Untold& window) const {
    if (keeps_now() || !cancelled_.empty()) return true;
    return options_.checkpoints && options_.checkpoint_steps > 0 &&
           std::any_of(window.steps.begin(), window.steps.end(), [&](const planner::WindowStep& step) {
             return step.global_batch + 1 - kept_[static_cast<std::size_t>(step.task)] >= options_.checkpoint_steps;
           });
  }

  Untold exchange(planner::Slice slice, RunReport report) {
    steps_.merge(report.steps);
    Untold untold;
    untold.window = slice.window;
    untold.begins = slice.begins;
    untold.computed_tokens = planner::count_tokens(slice.microbatches, plan_.workload).computed;
    if (communicator_.rank() == 0)
      untold.backbone_flops = planner::backbone_flops(slice.program, slice.microbatches, plan_.workload.backbone,
                                                      planner::adapters_of(plan_.workload));
    const planner::Timeline own = record(slice, std::move(report), untold);
    std::vector<double> numbers = {options_.stop && options_.stop->load() ? 1.0 : 0.0,
                                   static_cast<double>(own.begin()),
                                   static_cast<double>(planner::end_of_steps(own.events)),
                                   wants_to_keep() ? 1.0 : 0.0,
                                   wish_to_cancel(),
                                   wishes_to_change() ? 1.0 : 0.0};
    for (const planner::WindowStep& step : slice.steps) {
      const StepReport& taken = steps_.at({step.task, step.global_batch});
      numbers.insert(numbers.end(), {taken.loss.loss, taken.loss.margin, taken.loss.accuracy});
      numbers.push_back(taken.diverged ? 1 : 0);
      numbers.insert(numbers.end(), taken.squared_norms.begin(), taken.squared_norms.end());
      steps_.erase({step.task, step.global_batch});
    }
    untold.steps = std::move(slice.steps);
    untold.exchange = std::make_unique<WindowExchange>(std::move(numbers), communicator_, *all_ranks_);
    return untold;
  }

  /// On rank 0, a task's number from 1 on, or 0.
  double wish_to_cancel() const {
    if (communicator_.rank() != 0 || !options_.cancel) return 0;
    const std::optional<TaskIndex> task = options_.cancel();
    return task ? static_cast<double>(*task + 1) : 0.0;
  }
  bool wishes_to_change() const { return communicator_.rank() == 0 && options_.change && options_.change(); }
  /// That take no further step here.
  std::set<TaskIndex> ended_tasks() const {
    std::set<TaskIndex> tasks = held_;
    for (const auto& [task, how] : result_.ended) tasks.insert(task);
    return tasks;
  }
  void end_early(TaskIndex task, Ended how, WindowFeed& feed) {
    result_.ended[task] = how;
    feed.stop(task);
    runner_.stop(task);
  }

  /// Rank 0 looks at the clock.
  bool wants_to_keep() const {
    return communicator_.rank() == 0 && options_.checkpoint_seconds > 0 &&
           seconds_since(last_kept_) >= options_.checkpoint_seconds;
  }

  /// Keeps the events of the first windows, each with its window. Returns what of them is the slice's own.
  planner::Timeline record(planner::Slice& slice, RunReport report, Untold& untold) {
    const InstructionId first = slice.program.stages[static_cast<std::size_t>(runner_.stage())].first_id;
    const auto own = std::partition_point(report.events.begin(), report.events.end(),
                                          [&](const planner::Event& event) { return event.instruction < first; });
    if (last_recorded_) {
      std::vector<planner::Event>& before = result_.recorded.back().timeline.events;
      before.insert(before.end(), report.events.begin(), own);
    }
    planner::Timeline timeline{{own, report.events.end()}, std::move(report.memory)};
    last_recorded_ = result_.recorded.size() < options_.recorded_windows;
    if (last_recorded_) {
      result_.recorded.push_back({slice.window, slice.begins, std::move(slice.program), timeline, 0});
      untold.recorded = result_.recorded.size();
    }
    return timeline;
  }

  void tell(const Untold& window, WindowFeed& feed) {
    WindowExchange& exchange = *window.exchange;
    exchange.finish();
    unkept_ = true;
    if (exchange.sum(0) > 0) {
      result_.interrupted = true;
      feed.end();
    }
    if (exchange.sum(5) > 0) {
      result_.changes = true;
      feed.end();
    }
    // A message of the window before may come after all of this one's.
    const Nanoseconds end = std::max(last_end_, static_cast<Nanoseconds>(exchange.most(2)));
    WindowReport told;
    told.window = last_told_ = window.window;
    told.windows = windows_;
    told.seconds = seconds(end - (window.begins ? static_cast<Nanoseconds>(exchange.least(1)) : last_end_));
    last_end_ = end;
    if (window.recorded > 0) result_.recorded[window.recorded - 1].seconds = told.seconds;
    told.computed_tokens = window.computed_tokens;
    told.backbone_flops = window.backbone_flops;
    asked_to_keep_ |= exchange.sum(3) > 0;
    std::vector<TaskIndex> finished;
    std::size_t place = 6;
    for (const planner::WindowStep& step : window.steps) {
      const StepReport taken = completed(exchange, place);
      if (result_.ended.contains(step.task)) continue;
      const auto share = std::count_if(window.steps.begin(), window.steps.end(),
                                       [&](const planner::WindowStep& other) { return other.task == step.task; });
      told.steps.push_back(
          metrics_of(step, taken, plan_.workload, samples_, told.seconds / static_cast<double>(share)));
      if (!taken.diverged) {
        taken_[static_cast<std::size_t>(step.task)] = step.global_batch + 1;
        if (step.global_batch + 1 == samples_.steps(step.task)) finished.push_back(step.task);
        continue;
      }
      told.diverged.push_back(step.task);
      end_early(step.task, Ended::diverged, feed);
    }
    const auto cancelled = static_cast<TaskIndex>(exchange.sum(4)) - 1;
    if (cancelled >= 0 && !result_.ended.contains(cancelled) &&
        taken_[static_cast<std::size_t>(cancelled)] < samples_.steps(cancelled)) {
      end_early(cancelled, Ended::cancelled, feed);
      told.cancelled = cancelled;
      // It stays cancelled whatever becomes of this process: the state is kept before anything else says so.
      asked_to_keep_ = true;
      cancelled_.push_back(cancelled);
    }
    if (communicator_.rank() == 0 && options_.on_window) options_.on_window(told);
    if (!options_.on_finished) return;
    for (const TaskIndex task : finished) options_.on_finished(task);
  }

  /// A step's report with what all ranks have of it: the loss and the squared norm of each layer come from one rank
  /// each, so that the sums are exact.
  StepReport completed(const WindowExchange& exchange, std::size_t& place) const {
    StepReport report;
    report.loss.loss = exchange.sum(place++);
    report.loss.margin = exchange.sum(place++);
    report.loss.accuracy = exchange.sum(place++);
    report.diverged = exchange.sum(place++) > 0;
    for (std::int64_t layer = 0; layer < plan_.workload.backbone.layers; ++layer)
      report.squared_norms.push_back(exchange.sum(place++));
    return report;
  }

  const planner::Plan& plan_;
  const std::set<TaskIndex> planned_;
  const workload::SampleIndex& samples_;
  Runner& runner_;
  Communicator& communicator_;
  const TrainOptions& options_;
  std::unique_ptr<CommunicatorGroup> all_ranks_;
  std::int64_t windows_;
  std::vector<std::int64_t> taken_before_;  // steps of each task from which windows are counted; empty: 0
  std::vector<std::int64_t> taken_;         // that were told
  std::vector<std::int64_t> kept_;          // of them those of the last checkpoint
  SteadyClock::time_point last_kept_;
  bool unkept_ = false;               // something was told or evaluated since it was tried last
  bool asked_to_keep_ = false;        // by rank 0's clock, or as a task was cancelled
  std::vector<TaskIndex> cancelled_;  // and not told to be finished
  Evaluations evaluations_;
  TrainResult result_;
  std::set<TaskIndex> held_;                       // that wait for others of their search
  std::map<planner::BatchKey, StepReport> steps_;  // that have run here and whose window is not exchanged
  bool last_recorded_ = false;                     // the last window that ran
  std::int64_t last_told_ = -1;
  Nanoseconds last_end_ = 0;  // of the last window that was told
};

}  // namespace

std::set<TaskIndex> TrainResult::diverged() const {
  std::set<TaskIndex> tasks;
  for (const auto& [task, how] : ended)
    if (how == Ended::diverged) tasks.insert(task);
  return tasks;
}

TrainResult train(const planner::Plan& plan, const workload::SampleIndex& samples, Runner& runner,
                  Communicator& communicator, const TrainOptions& options) {
  return Training(plan, samples, runner, communicator, options).run();
}

}  // namespace braid::exec
