#include "planner/policies/common_options.h"
#include "planner/policies/registry.h"

namespace braid::planner {
namespace {

class Gpipe final : public Policy {
 public:
  std::string_view name() const override { return "gpipe"; }
  std::string_view summary() const override { return "all forwards, then all backwards, one task at a time (GPipe)"; }
  std::vector<PolicyOption> options() const override { return common_options(Padding::max_length); }

  Parallelism parallelism(const OptionValues& /*options*/) const override { return {.pipeline = true}; }
  bool passes_apart() const override { return true; }

  std::optional<Arrangement> arrange(const PolicyInput& input) const override {
    Arrangement arrangement;
    FixedPlan& fixed = arrangement.fixed;
    one_task_per_htask(input.task_count(), fixed);
    fixed.schedule.pipeline = PipelineTemplate::gpipe;
    set_common_options(input, fixed);
    queue_htasks(fixed);
    arrangement.reasons = reasons_of_system(input, fixed);
    return arrangement;
  }
};

}  // namespace

std::unique_ptr<Policy> make_gpipe() {
  return std::make_unique<Gpipe>();
}

}  // namespace braid::planner
