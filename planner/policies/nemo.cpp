#include "planner/policies/common_options.h"
#include "planner/policies/registry.h"

namespace braid::planner {
namespace {

class Nemo final : public Policy {
 public:
  std::string_view name() const override { return "nemo"; }
  std::string_view summary() const override {
    return "each task on a backbone of its own, one after another, with the best of tensor, pipeline (1F1B, "
           "interleaved too) and data "
           "parallelism (NeMo Megatron)";
  }
  std::vector<PolicyOption> options() const override {
    std::vector<PolicyOption> options = common_options(Padding::max_length);
    options.push_back(resident_option());
    options.push_back(sequence_parallel_option());
    options.push_back({"schedule", {"best", "1f1b"}});
    return options;
  }
  Parallelism parallelism(const OptionValues& options) const override {
    const bool interleaved = value_of(options, "schedule") == "best";
    return {.tensor = true, .pipeline = true, .data = true, .interleaved = interleaved};
  }

  std::optional<Arrangement> arrange(const PolicyInput& input) const override {
    Arrangement arrangement;
    FixedPlan& fixed = arrangement.fixed;
    one_task_per_htask(input.task_count(), fixed);
    fixed.schedule.pipeline = input.deployment.front().model_chunks > 1 ? PipelineTemplate::interleaved
                                                                        : PipelineTemplate::one_forward_one_backward;
    set_common_options(input, fixed);
    place_backbones(input, fixed);
    arrangement.reasons = reasons_of_system(input, fixed);
    return arrangement;
  }
};

}  // namespace

std::unique_ptr<Policy> make_nemo() {
  return std::make_unique<Nemo>();
}

}  // namespace braid::planner
