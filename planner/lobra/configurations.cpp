#include "planner/lobra/configurations.h"

#include <algorithm>
#include <numeric>

#include "planner/plan/stash_budget.h"

namespace braid::planner {
namespace {

using costmodel::MicrobatchLoad;
using costmodel::Pass;
using costmodel::StageShape;

/// Rows beyond so many tokens a microbatch gain nothing more on any GPU.
constexpr std::int64_t kMostTokens = 65536;
/// Pipelines are tried with microbatches of so many times fewer tokens, again and again down to the fewest.
constexpr std::int64_t kFewer = 2, kFewest = 8;

const costmodel::AdapterShape& heaviest_adapter(const workload::Workload& workload) {
  const auto lighter = [&](const workload::Task& a, const workload::Task& b) {
    return a.adapter.layer_parameters(workload.backbone) < b.adapter.layer_parameters(workload.backbone);
  };
  return std::max_element(workload.tasks.begin(), workload.tasks.end(), lighter)->adapter;
}

class KindMaker {
 public:
  KindMaker(const ProposalInput& input, const RowRules& rules)
      : input_(input), rules_(rules), heaviest_(heaviest_adapter(input.workload)) {}

  void add(const ReplicaShape& shape, std::vector<ReplicaKind>& kinds) {
    const std::int64_t most = most_tokens(shape);
    if (most < rules_.interval) return;
    const std::int64_t longest = (rules_.longest + rules_.interval - 1) / rules_.interval;
    const std::int64_t held = std::min(longest, most / rules_.interval);
    for (std::int64_t target = most; target > 0; target /= kFewer) {
      ReplicaKind kind{shape, {shape.tp * std::int64_t{shape.stages()}, {{}, shape.stages()}}};
      for (std::int64_t interval = 1; interval <= held; ++interval) {
        const std::int64_t length = interval * rules_.interval, rows = std::max<std::int64_t>(1, target / length);
        kind.configuration.speed.full.push_back({rows, slowest_stage(shape, rows, length)});
      }
      kinds.push_back(std::move(kind));
      // Where nothing flows from stage to stage the largest microbatches are the best.
      if (shape.stages() == 1 || target * kFewest <= most) break;
    }
  }

 private:
  MicrobatchLoad load_of(std::int64_t rows, std::int64_t length) const {
    MicrobatchLoad load;
    load.kernels = rules_.kernels;
    load.tokens = rows * length;
    load.scored = rows * (length - 1);
    load.sequences.assign(static_cast<std::size_t>(rows), {0, length});
    const auto tasks = rules_.mixes_tasks ? static_cast<std::int64_t>(input_.workload.tasks.size()) : 1;
    for (std::int64_t task = 0; task < std::min(tasks, rows); ++task) {
      const std::int64_t mine = rows / tasks + (task < rows % tasks ? 1 : 0);
      const costmodel::AdapterShape& adapter =
          tasks == 1 ? heaviest_ : input_.workload.tasks[static_cast<std::size_t>(task)].adapter;
      load.tasks.push_back({adapter, mine * length});
    }
    return load;
  }

  bool fits(const ReplicaShape& shape, std::int64_t tokens) const {
    // Two, so that what gradients are summed with is counted.
    const std::vector<ReplicaShape> deployment = {shape, shape};
    const PolicyInput asked{input_.workload, input_.samples, input_.latency, input_.capacity, deployment, 1,
                            input_.options};
    const costmodel::Storage storage = input_.latency.cost().storage();
    MicrobatchLoad load = load_of(1, tokens);
    load.tasks = {{heaviest_, tokens}};
    const std::vector<MicrobatchLoad> loads = {load};
    const std::vector<Bytes> budget = stash_budget(asked, storage, loads);
    const std::vector<StageShape> stages = stage_shapes(shape);
    for (std::size_t s = 0; s < stages.size() && input_.capacity > 0; ++s) {
      const auto under_way = static_cast<Bytes>(stages.size() - s);
      if (under_way * costmodel::stash_bytes(input_.workload.backbone, stages[s], loads.front(), storage) > budget[s])
        return false;
    }
    return true;
  }

  std::int64_t most_tokens(const ReplicaShape& shape) const {
    const std::int64_t most = std::max(std::min(kMostTokens, rules_.step_tokens), rules_.longest);
    std::int64_t fits_so_many = 0, intervals = (most + rules_.interval - 1) / rules_.interval + 1;
    while (fits_so_many + 1 < intervals) {
      const std::int64_t middle = (fits_so_many + intervals) / 2;
      (fits(shape, middle * rules_.interval) ? fits_so_many : intervals) = middle;
    }
    return fits_so_many * rules_.interval;
  }

  double slowest_stage(const ReplicaShape& shape, std::int64_t rows, std::int64_t length) {
    std::vector<std::int32_t> ranks(static_cast<std::size_t>(shape.tp));
    std::iota(ranks.begin(), ranks.end(), 0);
    const MicrobatchLoad load = load_of(rows, length);
    const std::vector<StageShape> stages = stage_shapes(shape);
    double slowest = 0;
    for (std::size_t s = 0; s < stages.size(); ++s) {
      if (s > 0 && stages[s] == stages[s - 1]) continue;
      double seconds = 0;
      for (const Pass pass : {Pass::forward, Pass::backward})
        seconds += input_.latency.alone(stages[s], ranks, load, pass).total.seconds;
      slowest = std::max(slowest, seconds);
    }
    return slowest;
  }

  const ProposalInput& input_;
  const RowRules& rules_;
  const costmodel::AdapterShape& heaviest_;
};

/// Powers of two within a node, and whole nodes.
std::vector<std::int64_t> tensor_degrees(const ProposalInput& input) {
  if (input.overrides.tp) return {*input.overrides.tp};
  if (input.cluster.gpu == "cpu") return {1};
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
  if (input.cluster.gpu == "cpu") return {most};
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
        maker.add(one.front(), kinds);
      }
    }
  }
  return kinds;
}

}  // namespace braid::planner
