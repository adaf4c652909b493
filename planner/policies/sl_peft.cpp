#include "planner/policies/common_options.h"
#include "planner/policies/registry.h"

namespace braid::planner {
namespace {

class SlPeft final : public Policy {
 public:
  std::string_view name() const override { return "sl-peft"; }
  std::string_view summary() const override {
    return "all tasks batched in every microbatch, padded to the longest, 1F1B (SLoRA-style batching)";
  }
  std::vector<PolicyOption> options() const override { return common_options(Padding::longest, false); }

  bool shares_backbone() const override { return true; }
  Parallelism parallelism(const OptionValues& /*options*/) const override {
    return {.tensor = true, .pipeline = true, .data = true};
  }

  std::optional<Arrangement> arrange(const PolicyInput& input) const override {
    Arrangement arrangement;
    FixedPlan& fixed = arrangement.fixed;
    fixed.htasks.emplace_back();
    for (TaskIndex task = 0; task < input.task_count(); ++task) fixed.htasks[0].push_back(task);
    fixed.buckets = {{0}};
    fixed.schedule.pipeline = PipelineTemplate::one_forward_one_backward;
    set_common_options(input, fixed);
    arrangement.reasons = reasons_of_system(input, fixed);
    return arrangement;
  }
};

}  // namespace

std::unique_ptr<Policy> make_sl_peft() {
  return std::make_unique<SlPeft>();
}

}  // namespace braid::planner
