#include "planner/policy.h"

namespace braid::planner {
namespace {

class SlPeft final : public Policy {
 public:
  std::string_view name() const override { return "sl-peft"; }
  std::string_view summary() const override {
    return "all tasks batched in every microbatch, padded to the longest, 1F1B (SLoRA-style batching)";
  }
  std::vector<PolicyOption> options() const override { return {padding_option(Padding::longest)}; }

  FixedPlan arrange(std::int32_t task_count, const OptionValues& options) const override {
    FixedPlan fixed;
    fixed.htasks.emplace_back();
    for (TaskIndex task = 0; task < task_count; ++task) fixed.htasks[0].push_back(task);
    fixed.buckets = {{0}};
    fixed.pipeline = PipelineTemplate::one_forward_one_backward;
    fixed.padding = padding_of(options);
    fixed.turns = Turns::together;
    return fixed;
  }
};

}  // namespace

std::unique_ptr<Policy> make_sl_peft() {
  return std::make_unique<SlPeft>();
}

}  // namespace braid::planner
