#include "planner/policies/common_options.h"
#include "planner/policies/registry.h"

namespace braid::planner {
namespace {

class MegatronPp final : public Policy {
 public:
  std::string_view name() const override { return "megatron-pp"; }
  std::string_view summary() const override { return "1F1B over the stages, one task at a time (Megatron-LM)"; }
  std::vector<PolicyOption> options() const override { return common_options(Padding::max_length); }

  Parallelism parallelism(const OptionValues& /*options*/) const override { return {.pipeline = true}; }

  std::optional<Arrangement> arrange(const PolicyInput& input) const override {
    Arrangement arrangement;
    FixedPlan& fixed = arrangement.fixed;
    one_task_per_htask(input.task_count(), fixed);
    fixed.schedule.pipeline = PipelineTemplate::one_forward_one_backward;
    set_common_options(input, fixed);
    queue_htasks(fixed);
    arrangement.reasons = reasons_of_system(input, fixed);
    return arrangement;
  }
};

}  // namespace

std::unique_ptr<Policy> make_megatron_pp() {
  return std::make_unique<MegatronPp>();
}

}  // namespace braid::planner
