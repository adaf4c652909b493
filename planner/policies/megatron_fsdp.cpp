#include "planner/policies/common_options.h"
#include "planner/policies/registry.h"

namespace braid::planner {
namespace {

/// Every rank keeps a share of the frozen weights, gathers each layer's before it computes in either direction, the
/// next one's while it does, and drops them after; the embedding and the head are gathered before a Forward. Frozen
/// weights have no gradients to reduce; adapters' are summed.
class MegatronFsdp final : public Policy {
 public:
  std::string_view name() const override { return "megatron-fsdp"; }
  std::string_view summary() const override {
    return "weights in shares over all ranks, gathered layer by layer ahead of use, one task at a time (FSDP)";
  }
  std::vector<PolicyOption> options() const override { return common_options(Padding::max_length); }
  Parallelism parallelism(const OptionValues& /*options*/) const override { return {.data = true}; }
  bool gathers_weights() const override { return true; }

  std::optional<Arrangement> arrange(const PolicyInput& input) const override {
    Arrangement arrangement;
    FixedPlan& fixed = arrangement.fixed;
    one_task_per_htask(input.task_count(), fixed);
    fixed.schedule.pipeline = PipelineTemplate::one_by_one;
    set_common_options(input, fixed);
    queue_htasks(fixed);
    fixed.shards_weights = true;
    arrangement.reasons = reasons_of_system(input, fixed);
    return arrangement;
  }
};

}  // namespace

std::unique_ptr<Policy> make_megatron_fsdp() {
  return std::make_unique<MegatronFsdp>();
}

}  // namespace braid::planner
