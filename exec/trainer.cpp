#include "exec/trainer.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <optional>
#include <thread>

#include "base/error.h"
#include "exec/files/peft.h"
#include "exec/optimizer.h"
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

std::vector<int> all_ranks(const Communicator& communicator) {
  std::vector<int> ranks(static_cast<std::size_t>(communicator.size()));
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

/// What a window left behind on every rank, while it is exchanged: numbers of one kind after another, from rank 0 on.
class WindowExchange {
 public:
  /// Numbers: whether the rank was asked to stop, when the window began and ended there, and each step's report.
  WindowExchange(std::vector<double> mine, const Communicator& communicator, CommunicatorGroup& group)
      : mine_(std::move(mine)), all_(mine_.size() * static_cast<std::size_t>(communicator.size())) {
    const std::vector<int> counts(static_cast<std::size_t>(communicator.size()), static_cast<int>(mine_.size()));
    request_ = group.all_gather(mine_, counts, all_);
  }
  void finish() {
    while (!request_->done()) std::this_thread::yield();
  }

  std::size_t size() const { return mine_.size(); }
  double sum(std::size_t place) const {
    double sum = 0;
    for (std::size_t i = place; i < all_.size(); i += size()) sum += all_[i];
    return sum;
  }
  double least(std::size_t place) const {
    double least = all_[place];
    for (std::size_t i = place; i < all_.size(); i += size()) least = std::min(least, all_[i]);
    return least;
  }
  double most(std::size_t place) const {
    double most = all_[place];
    for (std::size_t i = place; i < all_.size(); i += size()) most = std::max(most, all_[i]);
    return most;
  }

 private:
  std::vector<double> mine_, all_;
  std::unique_ptr<Request> request_;
};

class Training {
 public:
  Training(const planner::Plan& plan, const workload::SampleIndex& samples, Runner& runner, Communicator& communicator,
           const TrainOptions& options)
      : plan_(plan),
        samples_(samples),
        runner_(runner),
        communicator_(communicator),
        options_(options),
        all_ranks_(communicator.make_group(all_ranks(communicator))),
        windows_(planner::window_count(plan.fixed, {plan.workload, samples})) {}

  TrainResult run() {
    std::vector<std::int64_t> chosen = options_.windows;
    if (chosen.empty()) {
      chosen.resize(static_cast<std::size_t>(windows_));
      std::iota(chosen.begin(), chosen.end(), 0);
    }
    runner_.score_references(options_.windows, communicator_.rank() == 0 ? options_.on_references : nullptr);
    for (auto first = chosen.begin(); first != chosen.end() && !result_.interrupted;) {
      auto last = first + 1;
      while (last != chosen.end() && *last == *(last - 1) + 1) ++last;
      run_consecutive(*first, *(last - 1) + 1);
      first = last;
    }
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

  /// What a window left behind is told when the next one has run, or at once where the pipeline has drained.
  void run_consecutive(std::int64_t first, std::int64_t last) {
    WindowFeed feed(plan_.fixed, {plan_.workload, samples_, result_.diverged}, first, last, plan_.profile,
                    communicator_);
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
      if (!drains) continue;
      tell(*untold, feed);
      untold.reset();
    }
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
    std::vector<double> numbers = {options_.stop && options_.stop->load() ? 1.0 : 0.0, static_cast<double>(own.begin()),
                                   static_cast<double>(planner::end_of_steps(own.events))};
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
    if (exchange.sum(0) > 0) {
      result_.interrupted = true;
      feed.end();
    }
    const auto end = static_cast<Nanoseconds>(exchange.most(2));
    WindowReport told;
    told.window = window.window;
    told.windows = windows_;
    told.seconds = seconds(end - (window.begins ? static_cast<Nanoseconds>(exchange.least(1)) : last_end_));
    last_end_ = end;
    if (window.recorded > 0) result_.recorded[window.recorded - 1].seconds = told.seconds;
    told.computed_tokens = window.computed_tokens;
    told.backbone_flops = window.backbone_flops;
    std::size_t place = 3;
    for (const planner::WindowStep& step : window.steps) {
      const StepReport taken = completed(exchange, place);
      if (result_.diverged.contains(step.task)) continue;
      const auto share = std::count_if(window.steps.begin(), window.steps.end(),
                                       [&](const planner::WindowStep& other) { return other.task == step.task; });
      told.steps.push_back(
          metrics_of(step, taken, plan_.workload, samples_, told.seconds / static_cast<double>(share)));
      if (!taken.diverged) continue;
      told.diverged.push_back(step.task);
      result_.diverged.insert(step.task);
      feed.stop(step.task);
      runner_.stop(step.task);
    }
    if (communicator_.rank() == 0 && options_.on_window) options_.on_window(told);
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
  const workload::SampleIndex& samples_;
  Runner& runner_;
  Communicator& communicator_;
  const TrainOptions& options_;
  std::unique_ptr<CommunicatorGroup> all_ranks_;
  std::int64_t windows_;
  TrainResult result_;
  std::map<planner::BatchKey, StepReport> steps_;  // that have run here and whose window is not exchanged
  bool last_recorded_ = false;                     // the last window that ran
  Nanoseconds last_end_ = 0;                       // of the last window that was told
};

}  // namespace

TrainResult train(const planner::Plan& plan, const workload::SampleIndex& samples, Runner& runner,
                  Communicator& communicator, const TrainOptions& options) {
  return Training(plan, samples, runner, communicator, options).run();
}

namespace {

double largest_magnitude(std::span<const float> numbers) {
  double largest = 0;
  for (const float number : numbers) {
    if (!std::isfinite(number)) return std::numeric_limits<double>::infinity();
    largest = std::max(largest, std::abs(static_cast<double>(number)));
  }
  return largest;
}

/// A rank's parameters, layer after layer, where they belong in the whole adapter.
void put_layers(const std::string& bytes, const HeldLayers& layers, Adapter& whole) {
  const auto each = static_cast<std::size_t>(whole.layer_numbers()) * sizeof(float);
  BRAID_CHECK(bytes.size() == each * layers.numbers().size(), "gathered {} bytes of {} layers", bytes.size(),
              layers.count());
  for (std::size_t i = 0; i < layers.numbers().size(); ++i)
    std::memcpy(whole.parameters().data() + layers.numbers()[i] * whole.layer_numbers(), bytes.data() + i * each, each);
}

}  // namespace

std::vector<double> write_adapters(const std::filesystem::path& folder, const workload::Workload& workload,
                                   const std::set<TaskIndex>& without, Runner& runner, Communicator& communicator) {
  std::vector<double> largest(workload.tasks.size(), 0);
  for (std::size_t task = 0; task < workload.tasks.size(); ++task) {
    Adapter& adapter = *runner.adapters()[task];
    const std::vector<float> mine = adapter.parameters_on_host();
    const std::vector<std::string> parts = communicator.gather(to_bytes(mine));
    if (communicator.rank() != 0 || without.contains(static_cast<TaskIndex>(task))) continue;
    const workload::Task& spec = workload.tasks[task];
    Adapter whole(workload.backbone, spec.adapter,
                  planner::LayerRange{0, static_cast<std::int32_t>(workload.backbone.layers)}, spec.seed);
    // What is frozen in it is as it was found.
    if (!spec.init_from.empty()) load_peft_adapter(spec.init_from, whole);
    for (std::size_t rank = 0; rank < parts.size(); ++rank) {
      const RankPlace& place = runner.places()[rank];
      if (place.tells_of_layers()) put_layers(parts[rank], place.layers, whole);
    }
    largest[task] = largest_magnitude(whole.parameters().span());
    if (!std::isfinite(largest[task])) continue;
    write_peft_adapter(folder / spec.name, spec.adapter, workload.backbone, workload::published_name(workload),
                       adapter_tensors(whole));
  }
  return largest;
}

}  // namespace braid::exec
