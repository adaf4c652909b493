#include "planner/plan/recomputation.h"
#include "planner/policies/common_options.h"
#include "planner/policies/registry.h"

namespace braid::planner {
namespace {

/// What all the others can do: planning asks each of them, and more (search/ways.h).
class Braid final : public Policy {
 public:
  std::string_view name() const override { return "braid"; }
  std::string_view summary() const override {
    return "whichever plan of all that the other policies and their options have is the fastest, layers balanced where "
           "that helps";
  }
  std::vector<PolicyOption> options() const override {
    return {{"kernels", {"auto", "fused", "separate"}},
            transport_option(),
            recompute_option(true),
            sequence_parallel_option()};
  }
  bool shares_backbone() const override { return true; }
  Parallelism parallelism(const OptionValues& /*options*/) const override {
    return {.tensor = true, .pipeline = true, .data = true};
  }
  bool unites() const override { return true; }
  std::optional<Arrangement> arrange(const PolicyInput& /*input*/) const override { return std::nullopt; }
};

}  // namespace

std::unique_ptr<Policy> make_braid() {
  return std::make_unique<Braid>();
}

}  // namespace braid::planner
