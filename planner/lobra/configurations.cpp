#include "planner/lobra/configurations.h"

#include <algorithm>
#include <bit>

#include "planner/plan/replica_costs.h"

namespace braid::planner {
namespace {

/// Rows beyond so many tokens a microbatch gain nothing more on any GPU.
constexpr std::int64_t kMostTokens = 65536;
/// Pipelines are tried with microbatches of so many times fewer tokens, again and again down to the fewest.
constexpr std::int64_t kFewer = 2, kFewest = 8;

class KindMaker {
 public:
  KindMaker(const ProposalInput& input, const RowRules& rules)
      : rules_(rules), costs_(input, rules.kernels, rules.mixes_tasks), may_recompute_(input.may_recompute()) {}

  void add(const ReplicaShape& shape, std::vector<ReplicaKind>& kinds) {
    std::int64_t most =
        costs_.most_tokens(shape, rules_.interval, std::max(std::min(kMostTokens, rules_.step_tokens), rules_.longest));
    if (most < rules_.interval) return;
    if (rules_.doubled) most = rules_.interval * std::int64_t(std::bit_floor(std::uint64_t(most / rules_.interval)));
    const std::int64_t longest = (rules_.longest + rules_.interval - 1) / rules_.interval;
    const std::int64_t held = std::min(longest, most / rules_.interval);
    const bool some_layers = may_recompute_ && recomputes({shape});
    for (std::int64_t target = most; target > 0; target /= kFewer) {
      const std::int64_t tokens = std::max(target, held * rules_.interval);
      const ReplicaShape lean = some_layers ? costs_.with_fewest_layers(shape, tokens) : shape;
      // Which is there already, with no recomputation to choose.
      if (some_layers && !recomputes({lean})) break;
      ReplicaKind kind{lean, {lean.tp * std::int64_t{lean.stages()}, {{}, lean.stages()}}};
      for (std::int64_t interval = 1; interval <= held; ++interval) {
        const std::int64_t length = interval * rules_.interval, rows = std::max<std::int64_t>(1, target / length);
        kind.configuration.speed.full.push_back({rows, costs_.slowest_stage(lean, costs_.load_of(rows, length))});
      }
      kinds.push_back(std::move(kind));
      // Where nothing flows from stage to stage, and no layer is spared, the largest microbatches are the best.
      const bool none_gains = shape.stages() == 1 && (!some_layers || target <= held * rules_.interval);
      if (none_gains || target * kFewest <= most) break;
    }
  }

 private:
  const RowRules& rules_;
  ReplicaCosts costs_;
  bool may_recompute_;
};

/// Powers of two within a node, and whole nodes.
std::vector<std::int64_t> tensor_degrees(const ProposalInput& input) {
  if (input.overrides.tp) return {*input.overrides.tp};
  if (input.cluster.own()) return {1};
  std::vector<std::int64_t> degrees;
  for (std::int64_t tp = 1; tp <= input.cluster.gpus(); tp *= 2) {
    const bool whole_nodes = tp % input.cluster.gpus_per_node == 0;
    if ((tp <= input.cluster.gpus_per_node || whole_nodes) && splits_heads(input.workload.backbone, tp))
      degrees.push_back(tp);
  }
  return degrees;
}

std::vector<std::int64_t> stage_counts(const ProposalInput& input, std::int64_t tp) {
  const std::int64_t most = std::min(input.cluster.gpus() / tp, input.workload.backbone.layers);
  if (input.overrides.pp) return {*input.overrides.pp};
  std::vector<std::int64_t> counts;
  for (const std::int64_t pp : {1, 2, 3, 4, 6, 8, 12, 16}) {
    if (pp <= most) counts.push_back(pp);
  }
  return counts;
}

}  // namespace

std::vector<ReplicaKind> replica_kinds(const ProposalInput& input, const RowRules& rules,
                                       std::span<const costmodel::RecomputeKind> recompute) {
  std::vector<ReplicaKind> kinds;
  KindMaker maker(input, rules);
  for (const std::int64_t tp : tensor_degrees(input)) {
    for (const std::int64_t pp : stage_counts(input, tp)) {
      for (const costmodel::RecomputeKind kind : recompute) {
        std::vector<ReplicaShape> one = deploy(input.workload.backbone.layers, tp, pp, 1);
        recompute_all(kind, one);
        if (input.shares_tokens) share_tokens(one);
        maker.add(one.front(), kinds);
      }
    }
  }
  return kinds;
}

}  // namespace braid::planner
