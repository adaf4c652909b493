#include <algorithm>
#include <array>
#include <numeric>

#include "planner/muxtune/task_grouping.h"
#include "planner/plan/stash_budget.h"
#include "planner/plan/task_load.h"
#include "planner/plan/task_scheduler.h"
#include "planner/policies/common_options.h"
#include "planner/policies/registry.h"
#include "planner/program/orders.h"
#include "planner/window/window_steps.h"

namespace braid::planner {
namespace {

using costmodel::MicrobatchLoad;

/// Messages that take less of a pass are not worth nearly twice the activations.
constexpr double kWorthHiding = 0.05;

/// Arranges turns of tasks that fit memory at once (§3.4), and the tasks of each in batches (§3.3).
class LoraArrangement {
 public:
  explicit LoraArrangement(const PolicyInput& input)
      : input_(input),
        stages_(input.deployment.front().stages()),
        storage_(input.cost().storage()),
        learns_(value_of(input.options, "memory") == "learned" && input.capacity > 0),
        batches_(!learns_ && value_of(input.options, "batch") == "on") {
    fixed_.schedule.pipeline =
        value_of(input.options, "mode") == "1f1b" ? PipelineTemplate::lora_1f1b : PipelineTemplate::lora_gpipe;
    set_common_options(input, fixed_);
    fixed_.schedule.blocking_messages = value_of(input.options, "overlap") == "off";
    const bool fused = fixed_.adapter_kernels == costmodel::AdapterKernels::fused;
    if (!fused && value_of(input.options, "pruning") == "off")
      fixed_.adapter_kernels = costmodel::AdapterKernels::split;
    for (TaskIndex task = 0; task < input.task_count(); ++task)
      loads_.push_back(task_load(input, task, fixed_.batching.padding, fixed_.adapter_kernels));
  }

  Arrangement run() {
    const std::vector<std::vector<TaskIndex>> turns = fewest_turns();
    if (turns.size() == 1) hide_transfers();
    for (const std::vector<TaskIndex>& turn : turns) {
      std::vector<std::int32_t> places;
      for (std::vector<TaskIndex>& htask : batches_of(turn)) {
        places.push_back(static_cast<std::int32_t>(fixed_.htasks.size()));
        fixed_.htasks.push_back(std::move(htask));
      }
      if (turns.size() > 1) fixed_.schedule.turns.push_back(places);
    }
    fixed_.buckets.emplace_back(fixed_.htasks.size());
    std::iota(fixed_.buckets[0].begin(), fixed_.buckets[0].end(), 0);
    std::vector<std::string> lines = reasons(turns);
    if (!input_.silent && learns_) {
      admit_learning(turns.size(), lines);
    } else if (!input_.silent && turns.size() > 1) {
      admit_early(lines);
    }
    return Arrangement{fixed_, std::move(lines)};
  }

 private:
  std::size_t count() const { return loads_.size(); }

  std::vector<TaskIndex> by_priority() const {
    std::vector<TaskIndex> order(count());
    std::iota(order.begin(), order.end(), 0);
    const std::vector<workload::Task>& tasks = input_.workload.tasks;
    std::stable_sort(order.begin(), order.end(), [&](TaskIndex a, TaskIndex b) {
      return tasks[static_cast<std::size_t>(a)].priority > tasks[static_cast<std::size_t>(b)].priority;
    });
    return order;
  }

  /// Batches hold more at once than their tasks by themselves, which may fit where those do not.
  std::vector<std::vector<TaskIndex>> fewest_turns() {
    const auto admitted = [&] {
      return admit_in_turns(by_priority(), [&](std::span<const TaskIndex> tasks) { return fits(tasks); });
    };
    std::vector<std::vector<TaskIndex>> turns = admitted();
    if (!batches_ || turns.size() == 1) return turns;
    batches_ = false;
    if (std::vector<std::vector<TaskIndex>> apart = admitted(); apart.size() < turns.size()) {
      turns_in_batches_ = turns.size();
      return apart;
    }
    batches_ = true;
    return turns;
  }

  /// Has more microbatches under way where messages take long and memory holds those.
  void hide_transfers() {
    const double share = transfer_share();
    if (share < kWorthHiding) return;
    fixed_.schedule.transfer_share = share;
    if (!fits(by_priority())) fixed_.schedule.transfer_share = 0;
  }

  /// Where that makes the run shorter, hTasks take the places of those that end, by priority, within a turn too.
  void admit_early(std::vector<std::string>& lines) {
    const WindowInput run{input_.workload, input_.samples};
    const std::int64_t in_turns = window_count(fixed_, run);
    fixed_.schedule.admissions = admissions();
    if (const std::int64_t windows = window_count(fixed_, run); windows < in_turns) {
      lines.push_back(
          fmt::format("tasks take the places of those that end: all are done in {} steps, not {}", windows, in_turns));
    } else {
      fixed_.schedule.admissions.clear();
    }
  }

  /// Every task a batch of its own, since who runs changes from border to border.
  void admit_learning(std::size_t turns, std::vector<std::string>& lines) {
    const WindowInput run{input_.workload, input_.samples};
    const std::int64_t known = turns == 1 ? window_count(fixed_, run) : steps_of(admissions());
    std::vector<LearnedHTask> queue;
    for (const TaskIndex task : by_priority()) {
      const workload::Task& queued = input_.workload.tasks[static_cast<std::size_t>(task)];
      const MicrobatchLoad& load = loads_[static_cast<std::size_t>(task)];
      const auto place = static_cast<TaskIndex>(
          std::find(fixed_.htasks.begin(), fixed_.htasks.end(), std::vector{task}) - fixed_.htasks.begin());
      queue.push_back({{place, queued.priority, static_cast<std::int64_t>(load.sequences.size()),
                        load.sequences.front().context, kept_width(queued.adapter, input_.workload.backbone)},
                       input_.samples.steps(task),
                       stashes_held({&load, 1})});
    }
    fixed_.schedule.admissions = admit_while_learning(queue, stash_budget(input_, storage_, loads_));
    lines.push_back(
        fmt::format("what tasks take of memory is learned as they run: all are done in {} steps, {} if it were known",
                    steps_of(fixed_.schedule.admissions), known));
  }

  static std::int64_t steps_of(std::span<const Admission> admissions) {
    std::int64_t steps = 0;
    for (const Admission& admission : admissions) steps += admission.windows;
    return steps;
  }

  std::vector<Admission> admissions() const {
    std::vector<MicrobatchLoad> loads;
    std::vector<std::int64_t> windows;
    for (const std::vector<TaskIndex>& htask : fixed_.htasks) {
      loads.push_back(load_of_batch(htask));
      std::int64_t steps = 0;
      for (const TaskIndex task : htask) steps = std::max(steps, input_.samples.steps(task));
      windows.push_back(steps);
    }
    std::vector<std::int32_t> in_order;
    for (const TaskIndex task : by_priority()) {
      const auto holds = [&](const std::vector<TaskIndex>& htask) {
        return std::find(htask.begin(), htask.end(), task) != htask.end();
      };
      const auto htask = std::find_if(fixed_.htasks.begin(), fixed_.htasks.end(), holds);
      const auto place = static_cast<std::int32_t>(htask - fixed_.htasks.begin());
      if (std::find(in_order.begin(), in_order.end(), place) == in_order.end()) in_order.push_back(place);
    }
    return admit_at_borders(in_order, windows, [&](std::span<const std::int32_t> htasks) {
      std::vector<MicrobatchLoad> together;
      for (const std::int32_t htask : htasks) together.push_back(loads[static_cast<std::size_t>(htask)]);
      return batches_fit(together);
    });
  }

  /// Transfers run beside passes (§3.2.2), so that enough must be under way: the longest that any batch's takes of its
  /// mean pass on the slowest stage.
  double transfer_share() const {
    if (fixed_.schedule.pipeline != PipelineTemplate::lora_1f1b || stages_ < 2) return 0;
    double share = 0;
    for (const MicrobatchLoad& load : batch_loads(by_priority()))
      share = std::max(share, transfer_seconds(load) / mean_pass_seconds(load));
    return share;
  }

  double mean_pass_seconds(const MicrobatchLoad& load) const {
    const std::int32_t rank = 0;
    double slowest = 0;
    for (const costmodel::StageShape& shape : stage_shapes(input_.deployment.front())) {
      const auto pass = [&](costmodel::Pass which) {
        return input_.latency.alone(shape, {&rank, 1}, load, which).total.seconds;
      };
      slowest = std::max(slowest, (pass(costmodel::Pass::forward) + pass(costmodel::Pass::backward)) / 2);
    }
    return slowest;
  }

  double transfer_seconds(const MicrobatchLoad& load) const {
    const costmodel::CostModel& cost = input_.cost();
    const Bytes bytes = load.tokens * costmodel::message_bytes_per_token(input_.workload.backbone, storage_);
    double longest = 0;
    for (std::int32_t stage = 0; stage + 1 < stages_; ++stage) {
      const std::array ends = {stage, stage + 1};
      const costmodel::OperatorShape link = cost.group_shape(costmodel::Operator::send_recv, ends);
      const costmodel::OperatorCall message{
          costmodel::Operator::send_recv, costmodel::Pass::forward, link, bytes, 0, 0, 1};
      longest = std::max(longest, cost.estimate(message).seconds);
    }
    return longest;
  }

  /// A microbatch of each batch.
  std::vector<MicrobatchLoad> batch_loads(std::span<const TaskIndex> tasks) const {
    std::vector<MicrobatchLoad> loads;
    for (const std::vector<TaskIndex>& batch : batches_of(tasks)) loads.push_back(load_of_batch(batch));
    return loads;
  }

  MicrobatchLoad load_of_batch(std::span<const TaskIndex> batch) const {
    std::vector<MicrobatchLoad> loads;
    for (const TaskIndex task : batch) loads.push_back(loads_[static_cast<std::size_t>(task)]);
    return merge(loads);
  }

  /// More tasks than stages in as many batches, of tokens as even as can be, so that the pipeline stays full (§3.3.1).
  std::vector<std::vector<TaskIndex>> batches_of(std::span<const TaskIndex> tasks) const {
    std::vector<std::vector<TaskIndex>> batches;
    if (!batches_ || tasks.size() <= static_cast<std::size_t>(stages_)) {
      for (const TaskIndex task : tasks) batches.push_back({task});
    } else {
      std::vector<double> tokens;
      for (const TaskIndex index : tasks) {
        const workload::Task& task = input_.workload.tasks[static_cast<std::size_t>(index)];
        tokens.push_back(static_cast<double>(task.global_batch_size * task.sample_tokens()));
      }
      for (const std::vector<std::int32_t>& group : group_htasks(tokens, stages_).buckets) {
        std::vector<TaskIndex>& batch = batches.emplace_back();
        for (const std::int32_t place : group) batch.push_back(tasks[static_cast<std::size_t>(place)]);
        std::sort(batch.begin(), batch.end());
      }
    }
    std::sort(batches.begin(), batches.end());
    return batches;
  }

  /// Per stage, of microbatches beside all that is always held: in 1F1B mode the largest, as many as there are stages
  /// from it on and those ahead; else all.
  std::vector<Bytes> stashes_held(std::span<const MicrobatchLoad> loads) const {
    const std::vector<costmodel::StageShape> shapes = stage_shapes(input_.deployment.front());
    std::vector<Bytes> held;
    for (std::size_t s = 0; s < shapes.size(); ++s) {
      std::vector<Bytes> stashes;
      for (const MicrobatchLoad& load : loads)
        stashes.insert(stashes.end(), static_cast<std::size_t>(input_.microbatches),
                       costmodel::stash_bytes(input_.workload.backbone, shapes[s], load, storage_));
      std::sort(stashes.begin(), stashes.end(), std::greater<>());
      if (fixed_.schedule.pipeline == PipelineTemplate::lora_1f1b) {
        const std::int64_t under_way =
            most_under_way(static_cast<std::int64_t>(shapes.size() - s), fixed_.schedule.transfer_share);
        stashes.resize(std::min(stashes.size(), static_cast<std::size_t>(under_way)));
      }
      held.push_back(std::accumulate(stashes.begin(), stashes.end(), Bytes{0}));
    }
    return held;
  }

  /// A scheduler that learns adds up what it measured of tasks one by one (§3.4), all of which may be more than they
  /// hold at once.
  bool batches_fit(std::span<const MicrobatchLoad> loads) const {
    if (input_.capacity <= 0) return true;
    const std::vector<Bytes> budget = stash_budget(input_, storage_, loads);
    std::vector<Bytes> held(budget.size(), 0);
    if (learns_) {
      for (const MicrobatchLoad& load : loads) {
        const std::vector<Bytes> alone = stashes_held({&load, 1});
        for (std::size_t s = 0; s < held.size(); ++s) held[s] += alone[s];
      }
    } else {
      held = stashes_held(loads);
    }
    for (std::size_t s = 0; s < held.size(); ++s) {
      if (held[s] > budget[s]) return false;
    }
    return true;
  }

  bool fits(std::span<const TaskIndex> tasks) const { return batches_fit(batch_loads(tasks)); }

  std::vector<std::string> reasons(const std::vector<std::vector<TaskIndex>>& turns) const {
    std::vector<std::string> lines;
    if (turns.size() > 1)
      lines.push_back(
          fmt::format("{} tasks do not fit memory at once: {} turns, by priority, then as they stand in "
                      "the workload, the first of {}",
                      count(), turns.size(), turns.front().size()));
    if (batches_ && fixed_.htasks.size() < count()) {
      lines.push_back(fmt::format("BatchLoRA: {} tasks, more than {} stages, in {} batches of like work", count(),
                                  stages_, fixed_.htasks.size()));
    } else {
      lines.push_back(fmt::format("every one of {} tasks on {} stages a batch of its own", count(), stages_));
      if (turns_in_batches_ > 0)
        lines.back() +=
            fmt::format(": batched, tasks would not fit memory at once and need {} turns", turns_in_batches_);
    }
    if (fixed_.schedule.transfer_share > 0)
      lines.push_back(
          fmt::format("messages take {:.0f} % of a pass: nearly twice the microbatches are under way, to hide them",
                      100 * fixed_.schedule.transfer_share));
    return lines;
  }

  const PolicyInput& input_;
  std::int32_t stages_;
  costmodel::Storage storage_;
  bool learns_;
  bool batches_;
  std::size_t turns_in_batches_ = 0;  // where batches were given up for fewer turns
  FixedPlan fixed_;
  std::vector<MicrobatchLoad> loads_;  // per task
};

class MLora final : public Policy {
 public:
  std::string_view name() const override { return "mlora"; }
  std::string_view summary() const override {
    return "microbatches of different tasks fill the pipeline without a flush; more tasks than stages are batched, "
           "more than fit memory wait, by priority (mLoRA)";
  }
  std::vector<PolicyOption> options() const override {
    std::vector<PolicyOption> options = common_options(Padding::max_length, false);
    options.insert(options.begin(), {{"mode", {"1f1b", "gpipe"}},
                                     {"batch", {"on", "off"}},
                                     {"pruning", {"on", "off"}},
                                     {"overlap", {"on", "off"}},
                                     {"memory", {"known", "learned"}}});
    return options;
  }
  bool shares_backbone() const override { return true; }
  Parallelism parallelism(const OptionValues& /*options*/) const override { return {.pipeline = true}; }

  std::optional<Arrangement> arrange(const PolicyInput& input) const override { return LoraArrangement(input).run(); }
};

}  // namespace

std::unique_ptr<Policy> make_mlora() {
  return std::make_unique<MLora>();
}

}  // namespace braid::planner
