#include <algorithm>
#include <numeric>

#include "planner/orders.h"
#include "planner/policy.h"
#include "planner/structured_plan.h"
#include "planner/task_grouping.h"
#include "planner/task_load.h"
#include "planner/task_scheduler.h"

namespace braid::planner {
namespace {

using costmodel::MicrobatchLoad;

/// Arranges turns of tasks that fit memory at once (§3.4), and the tasks of each in batches (§3.3).
class LoraArrangement {
 public:
  explicit LoraArrangement(const PolicyInput& input)
      : input_(input),
        stages_(input.deployment.front().stages()),
        storage_(input.cost().profile().storage()),
        batches_(value_of(input.options, "batch") == "on") {
    fixed_.pipeline =
        value_of(input.options, "mode") == "1f1b" ? PipelineTemplate::lora_1f1b : PipelineTemplate::lora_gpipe;
    set_common_options(input, fixed_);
    fixed_.steps_per_window = kStreamedSteps;
    const bool fused = fixed_.adapter_kernels == costmodel::AdapterKernels::fused;
    if (!fused && value_of(input.options, "pruning") == "off")
      fixed_.adapter_kernels = costmodel::AdapterKernels::split;
    for (TaskIndex task = 0; task < input.task_count(); ++task)
      loads_.push_back(task_load(input, task, fixed_.padding, fixed_.adapter_kernels));
  }

  Arrangement run() {
    fixed_.microbatches_ahead = to_hide_messages();
    while (fixed_.microbatches_ahead > 0 && !fits(by_priority())) --fixed_.microbatches_ahead;
    const auto turns = admit_in_turns(by_priority(), [&](std::span<const TaskIndex> tasks) { return fits(tasks); });
    for (const std::vector<TaskIndex>& turn : turns) {
      std::vector<std::int32_t> places;
      for (std::vector<TaskIndex>& htask : batches_of(turn)) {
        places.push_back(static_cast<std::int32_t>(fixed_.htasks.size()));
        fixed_.htasks.push_back(std::move(htask));
      }
      if (turns.size() > 1) fixed_.turns.push_back(places);
    }
    fixed_.buckets.emplace_back(fixed_.htasks.size());
    std::iota(fixed_.buckets[0].begin(), fixed_.buckets[0].end(), 0);
    return Arrangement{fixed_, reasons(turns)};
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

  /// Transfers run beside passes (§3.2.2): enough must be under way for that.
  std::int64_t to_hide_messages() const {
    if (fixed_.pipeline != PipelineTemplate::lora_1f1b || stages_ < 2) return 0;
    const std::vector<costmodel::StageShape> shapes = stage_shapes(input_.deployment.front());
    std::vector<std::int32_t> ranks(static_cast<std::size_t>(stages_));
    std::iota(ranks.begin(), ranks.end(), 0);
    const costmodel::CostModel& cost = input_.cost();
    std::int64_t ahead = 0;
    for (const MicrobatchLoad& load : batch_loads(by_priority())) {
      const Bytes bytes = load.tokens * costmodel::message_bytes_per_token(input_.workload.backbone, storage_);
      double forward = 0, backward = 0, transfer = 0;
      for (std::size_t s = 0; s < shapes.size(); ++s) {
        forward =
            std::max(forward, input_.latency.alone(shapes[s], {&ranks[s], 1}, load, costmodel::Pass::forward).seconds);
        backward = std::max(backward,
                            input_.latency.alone(shapes[s], {&ranks[s], 1}, load, costmodel::Pass::backward).seconds);
        if (s + 1 == shapes.size()) break;
        const auto link = cost.group_shape(costmodel::Operator::send_recv, std::span(ranks).subspan(s, 2));
        transfer = std::max(
            transfer,
            cost.estimate({costmodel::Operator::send_recv, costmodel::Pass::forward, link, bytes, 0, 0, 1}).seconds);
      }
      ahead = std::max(ahead, microbatches_ahead(stages_, forward, backward, transfer));
    }
    return ahead;
  }

  /// A microbatch of each batch.
  std::vector<MicrobatchLoad> batch_loads(std::span<const TaskIndex> tasks) const {
    std::vector<MicrobatchLoad> loads;
    for (const std::vector<TaskIndex>& batch : batches_of(tasks)) {
      std::vector<MicrobatchLoad> mine;
      for (const TaskIndex task : batch) mine.push_back(loads_[static_cast<std::size_t>(task)]);
      loads.push_back(merge(mine));
    }
    return loads;
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
        tokens.push_back(static_cast<double>(task.global_batch_size * task.max_length));
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

  /// The microbatches that each stage holds at once beside all that is always held: in 1F1B mode the largest, as many
  /// as there are stages from it on and those ahead; else all.
  bool fits(std::span<const TaskIndex> tasks) const {
    if (input_.capacity <= 0) return true;
    const std::vector<MicrobatchLoad> loads = batch_loads(tasks);
    const std::vector<Bytes> budget = stash_budget(input_, storage_, loads);
    const std::vector<costmodel::StageShape> shapes = stage_shapes(input_.deployment.front());
    for (std::size_t s = 0; s < shapes.size(); ++s) {
      std::vector<Bytes> stashes;
      for (const MicrobatchLoad& load : loads)
        stashes.insert(stashes.end(), static_cast<std::size_t>(input_.microbatches),
                       costmodel::stash_bytes(input_.workload.backbone, shapes[s], load, storage_));
      std::sort(stashes.begin(), stashes.end(), std::greater<>());
      if (fixed_.pipeline == PipelineTemplate::lora_1f1b) {
        const std::size_t from_here = shapes.size() - s;
        const std::size_t ahead = std::min(static_cast<std::size_t>(fixed_.microbatches_ahead), from_here - 1);
        stashes.resize(std::min(stashes.size(), from_here + ahead));
      }
      if (std::accumulate(stashes.begin(), stashes.end(), Bytes{0}) > budget[s]) return false;
    }
    return true;
  }

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
    }
    return lines;
  }

  const PolicyInput& input_;
  std::int32_t stages_;
  costmodel::Storage storage_;
  bool batches_;
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
    std::vector<PolicyOption> options = common_options(Padding::max_length);
    options.insert(options.begin(),
                   {{"mode", {"1f1b", "gpipe"}}, {"batch", {"on", "off"}}, {"pruning", {"on", "off"}}});
    return options;
  }
  Parallelism parallelism(const OptionValues& /*options*/) const override { return {.pipeline = true}; }

  std::optional<Arrangement> arrange(const PolicyInput& input) const override { return LoraArrangement(input).run(); }
};

}  // namespace

std::unique_ptr<Policy> make_mlora() {
  return std::make_unique<MLora>();
}

}  // namespace braid::planner
