#include "planner/policy.h"

namespace braid::planner {
namespace {

/// With several ranks its layers lie over them (device_map) and one rank works while the others wait; microbatches are
/// its gradient accumulation.
class HfPeft final : public Policy {
 public:
  std::string_view name() const override { return "hf-peft"; }
  std::string_view summary() const override {
    return "each task on a backbone of its own, one after another, as Hugging Face PEFT does";
  }
  std::vector<PolicyOption> options() const override {
    return {padding_option(Padding::max_length), {"resident", {"true", "false"}}};
  }

  FixedPlan arrange(std::int32_t task_count, const OptionValues& options) const override {
    FixedPlan fixed;
    one_task_per_htask(task_count, fixed);
    fixed.pipeline = PipelineTemplate::one_by_one;
    fixed.padding = padding_of(options);
    const bool resident = value_of(options, "resident") == "true";
    fixed.turns = resident ? Turns::together : Turns::queued;
    fixed.backbone_copies = resident ? task_count : 1;
    return fixed;
  }
};

}  // namespace

std::unique_ptr<Policy> make_hf_peft() {
  return std::make_unique<HfPeft>();
}

}  // namespace braid::planner
