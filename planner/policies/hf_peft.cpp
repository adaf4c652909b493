#include "planner/policies/common_options.h"
#include "planner/policies/registry.h"

namespace braid::planner {
namespace {

/// On several ranks: copies that share each batch (DDP), or layers laid over ranks (device_map), of which one works
/// while the others wait. Microbatches are its gradient accumulation.
class HfPeft final : public Policy {
 public:
  std::string_view name() const override { return "hf-peft"; }
  std::string_view summary() const override {
    return "each task on a backbone of its own, one after another, as Hugging Face PEFT does";
  }
  std::vector<PolicyOption> options() const override {
    std::vector<PolicyOption> options = common_options(Padding::max_length, false);
    options.push_back(resident_option());
    return options;
  }

  Parallelism parallelism(const OptionValues& /*options*/) const override { return {.pipeline = true, .data = true}; }

  std::optional<Arrangement> arrange(const PolicyInput& input) const override {
    Arrangement arrangement;
    FixedPlan& fixed = arrangement.fixed;
    one_task_per_htask(input.task_count(), fixed);
    fixed.schedule.pipeline = PipelineTemplate::one_by_one;
    set_common_options(input, fixed);
    place_backbones(input, fixed);
    arrangement.reasons = reasons_of_system(input, fixed);
    return arrangement;
  }
};

}  // namespace

std::unique_ptr<Policy> make_hf_peft() {
  return std::make_unique<HfPeft>();
}

}  // namespace braid::planner
