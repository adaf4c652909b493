#include "planner/lobra/lobra.h"

#include "planner/plan/recomputation.h"
#include "planner/policies/common_options.h"
#include "planner/policies/registry.h"

namespace braid::planner {
namespace {

/// LobRA, and what its paper compares it with.
class Lobra final : public Policy {
 public:
  Lobra(std::string_view name, std::string_view summary, bool unlike_replicas, bool one_by_one)
      : name_(name), summary_(summary), unlike_replicas_(unlike_replicas), one_by_one_(one_by_one) {}

  std::string_view name() const override { return name_; }
  std::string_view summary() const override { return summary_; }
  std::vector<PolicyOption> options() const override {
    std::vector<PolicyOption> options = {{"dispatch", {"balanced", "solved", "by_length"}},
                                         {"ranges", {"16"}, 1},
                                         {"interval", {"auto"}, 16},
                                         {"bucketing", {"dynamic", "fixed"}},
                                         {"capacity", {"exact", "doubled"}},
                                         {"kernels", {"separate", "fused"}},
                                         transport_option(),
                                         recompute_option(true),
                                         sequence_parallel_option()};
    if (unlike_replicas_) options.insert(options.begin(), {"deployment", {"searched", "solved"}});
    // Bins hold rows of all tasks.
    if (!one_by_one_) options.insert(options.end() - 4, {"rows", {"ranges", "bins"}});
    return options;
  }
  Parallelism parallelism(const OptionValues& /*options*/) const override {
    return {.tensor = true, .pipeline = true, .data = true};
  }
  std::optional<Arrangement> arrange(const PolicyInput& /*input*/) const override { return std::nullopt; }

  bool proposes() const override { return true; }
  /// One after another they have it to themselves.
  bool shares_backbone() const override { return !one_by_one_; }
  bool takes_solution() const override { return unlike_replicas_; }
  std::vector<Arrangement> propose(const ProposalInput& input) const override {
    const auto value = [&](std::string_view option) { return value_of(input.options, option); };
    LobraRules rules;
    rules.unlike_replicas = unlike_replicas_;
    rules.one_by_one = one_by_one_;
    if (unlike_replicas_) rules.solved = value("deployment") == "solved";
    if (value("dispatch") == "solved") rules.dispatch = LengthDispatch::Kind::solved;
    if (value("dispatch") == "by_length") rules.dispatch = LengthDispatch::Kind::by_length;
    rules.doubled = value("capacity") == "doubled";
    rules.ranges = std::stoll(value("ranges"));
    if (value("interval") != "auto") rules.interval = std::stoll(value("interval"));
    rules.fixed_ranges = value("bucketing") == "fixed";
    rules.bins = !one_by_one_ && value("rows") == "bins";
    if (value("kernels") == "fused") rules.kernels = costmodel::AdapterKernels::fused;
    rules.recompute = input.recompute;
    return propose_lobra(input, rules);
  }

 private:
  std::string_view name_, summary_;
  bool unlike_replicas_, one_by_one_;
};

}  // namespace

std::unique_ptr<Policy> make_lobra() {
  return std::make_unique<Lobra>("lobra",
                                 "all tasks together on unlike replicas, each sample where it fits and the slowest "
                                 "replica is fastest, rows of like lengths together (LobRA)",
                                 true, false);
}

std::unique_ptr<Policy> make_lobra_sequential() {
  return std::make_unique<Lobra>("lobra-sequential", "as lobra, one task after another", true, true);
}

std::unique_ptr<Policy> make_task_fused() {
  return std::make_unique<Lobra>("task-fused", "as lobra, on like replicas", false, false);
}

std::unique_ptr<Policy> make_task_sequential() {
  return std::make_unique<Lobra>("task-sequential", "as lobra, on like replicas and one task after another", false,
                                 true);
}

}  // namespace braid::planner
