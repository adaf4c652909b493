#include <algorithm>

#include "planner/policy.h"
#include "planner/task_grouping.h"

namespace braid::planner {
namespace {

/// Steps that a Program covers: the pipeline is not flushed between them.
constexpr std::int64_t kStepsPerWindow = 8;

class MLora final : public Policy {
 public:
  std::string_view name() const override { return "mlora"; }
  std::string_view summary() const override {
    return "microbatches of different tasks fill the pipeline without a flush; more tasks than stages are batched "
           "(mLoRA)";
  }
  std::vector<PolicyOption> options() const override {
    return {{"mode", {"1f1b", "gpipe"}},
            {"batch", {"on", "off"}},
            {"pruning", {"on", "off"}},
            {"kernels", {"separate", "fused"}},
            padding_option(Padding::max_length)};
  }
  Parallelism parallelism() const override { return {.pipeline = true}; }

  std::optional<Arrangement> arrange(const PolicyInput& input) const override {
    Arrangement arrangement;
    FixedPlan& fixed = arrangement.fixed;
    const auto stages = static_cast<std::int32_t>(input.deployment.front().layers.size());
    if (input.task_count() > stages && value_of(input.options, "batch") == "on") {
      consolidate(input, stages, fixed);
      arrangement.reasons.push_back(fmt::format("BatchLoRA: {} tasks, more than {} stages, in {} batches of like work",
                                                input.task_count(), stages, stages));
    } else {
      one_task_per_htask(input.task_count(), fixed);
      arrangement.reasons.push_back(
          fmt::format("every one of {} tasks on {} stages a batch of its own", input.task_count(), stages));
    }
    fixed.pipeline =
        value_of(input.options, "mode") == "1f1b" ? PipelineTemplate::lora_1f1b : PipelineTemplate::lora_gpipe;
    fixed.padding = padding_of(input.options);
    fixed.steps_per_window = kStepsPerWindow;
    if (value_of(input.options, "kernels") == "fused")
      fixed.adapter_kernels = costmodel::AdapterKernels::fused;
    else if (value_of(input.options, "pruning") == "off")
      fixed.adapter_kernels = costmodel::AdapterKernels::split;
    return arrangement;
  }

 private:
  /// As many hTasks as stages, of tokens as even as can be, so that the pipeline stays full (mLoRA §3.3.1).
  static void consolidate(const PolicyInput& input, std::int32_t stages, FixedPlan& fixed) {
    std::vector<double> tokens;
    for (const workload::Task& task : input.workload.tasks)
      tokens.push_back(static_cast<double>(task.global_batch_size * task.max_length));
    fixed.htasks = group_htasks(tokens, stages).buckets;
    std::sort(fixed.htasks.begin(), fixed.htasks.end());
    fixed.buckets = {{}};
    for (std::int32_t h = 0; h < stages; ++h) fixed.buckets[0].push_back(h);
  }
};

}  // namespace

std::unique_ptr<Policy> make_mlora() {
  return std::make_unique<MLora>();
}

}  // namespace braid::planner
