#include "planner/lorafusion/lorafusion.h"

#include "planner/plan/recomputation.h"
#include "planner/policies/common_options.h"
#include "planner/policies/registry.h"

namespace braid::planner {
namespace {

class LoraFusion final : public Policy {
 public:
  std::string_view name() const override { return "lorafusion"; }
  std::string_view summary() const override {
    return "tasks in groups whose steps follow one another without a flush, their samples packed into microbatches of "
           "one capacity, fused kernels (LoRAFusion)";
  }
  std::vector<PolicyOption> options() const override {
    return {{"groups", {"auto"}, 1},
            {"capacity", {"auto"}, 1},
            {"multiple", {"64"}, 1},
            {"packing", {"searched", "greedy", "solved"}},
            {"merge", {"auto", "on", "off"}},
            {"kernels", {"auto", "fused", "separate"}},
            transport_option(),
            recompute_option(true),
            sequence_parallel_option()};
  }
  bool shares_backbone() const override { return true; }
  Parallelism parallelism(const OptionValues& /*options*/) const override {
    return {.tensor = true, .pipeline = true, .data = true};
  }
  std::optional<Arrangement> arrange(const PolicyInput& /*input*/) const override { return std::nullopt; }

  bool proposes() const override { return true; }
  bool takes(const LayerSplit& /*split*/) const override { return true; }
  std::vector<Arrangement> propose(const ProposalInput& input) const override {
    const auto value = [&](std::string_view option) { return value_of(input.options, option); };
    LoraFusionRules rules;
    if (value("groups") != "auto") rules.groups = std::stoll(value("groups"));
    if (value("capacity") != "auto") rules.capacity = std::stoll(value("capacity"));
    rules.multiple = std::stoll(value("multiple"));
    if (value("packing") == "greedy") rules.search = BinSearch::greedy;
    if (value("packing") == "solved") rules.search = BinSearch::solved;
    if (value("merge") != "auto") rules.merges = {value("merge") == "on"};
    const bool separate = value("kernels") == "separate" || (value("kernels") == "auto" && input.cluster.own());
    if (separate) rules.kernels = costmodel::AdapterKernels::separate;
    rules.recompute = input.recompute;
    return propose_lorafusion(input, rules);
  }
};

}  // namespace

std::unique_ptr<Policy> make_lorafusion() {
  return std::make_unique<LoraFusion>();
}

}  // namespace braid::planner
