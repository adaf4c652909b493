#include "planner/plan/replica_costs.h"

#include <algorithm>
#include <numeric>

#include "planner/plan/stage_layers.h"
#include "planner/plan/stash_budget.h"

namespace braid::planner {
namespace {

using costmodel::MicrobatchLoad;
using costmodel::Pass;
using costmodel::StageShape;

const costmodel::AdapterShape& heaviest_adapter(const workload::Workload& workload) {
  const auto lighter = [&](const workload::Task& a, const workload::Task& b) {
    return a.adapter.layer_parameters(workload.backbone) < b.adapter.layer_parameters(workload.backbone);
  };
  return std::max_element(workload.tasks.begin(), workload.tasks.end(), lighter)->adapter;
}

}  // namespace

ReplicaCosts::ReplicaCosts(const ProposalInput& input, costmodel::AdapterKernels kernels, bool mixes_tasks)
    : input_(input), kernels_(kernels), mixes_tasks_(mixes_tasks), heaviest_(heaviest_adapter(input.workload)) {}

MicrobatchLoad ReplicaCosts::load_of(std::int64_t rows, std::int64_t length) const {
  MicrobatchLoad load;
  load.kernels = kernels_;
  load.tokens = rows * length;
  load.scored = rows * (length - 1);
  load.sequences.assign(static_cast<std::size_t>(rows), {0, length});
  const auto tasks = mixes_tasks_ ? static_cast<std::int64_t>(input_.workload.tasks.size()) : 1;
  for (std::int64_t task = 0; task < std::min(tasks, rows); ++task) {
    const std::int64_t mine = rows / tasks + (task < rows % tasks ? 1 : 0);
    const costmodel::AdapterShape& adapter =
        tasks == 1 ? heaviest_ : input_.workload.tasks[static_cast<std::size_t>(task)].adapter;
    load.tasks.push_back({adapter, mine * length});
  }
  return load;
}

std::vector<bool> ReplicaCosts::fits(const ReplicaShape& shape, std::int64_t tokens) const {
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
  std::vector<bool> ranks;
  for (std::size_t s = 0; s < stages.size(); ++s) {
    const auto under_way = static_cast<Bytes>(stages.size() - s);
    const bool fits =
        input_.capacity == 0 ||
        under_way * costmodel::stash_bytes(input_.workload.backbone, stages[s], loads.front(), storage) <= budget[s];
    ranks.insert(ranks.end(), static_cast<std::size_t>(shape.tp), fits);
  }
  return ranks;
}

bool ReplicaCosts::all_fit(const ReplicaShape& shape, std::int64_t tokens) const {
  const std::vector<bool> ranks = fits(shape, tokens);
  return std::find(ranks.begin(), ranks.end(), false) == ranks.end();
}

ReplicaShape ReplicaCosts::with_fewest_layers(const ReplicaShape& shape, std::int64_t tokens) const {
  const std::vector<ReplicaShape> all = {shape};
  for (StageLayers layers(all);;) {
    ReplicaShape tried = layers.in_the_middle().front();
    if (layers.found()) {
      if (!recomputes({tried})) tried.recompute.clear();
      return tried;
    }
    layers.halve(fits(tried, tokens));
  }
}

std::int64_t ReplicaCosts::most_tokens(const ReplicaShape& shape, std::int64_t unit, std::int64_t most) const {
  std::int64_t fits_so_many = 0, intervals = (most + unit - 1) / unit + 1;
  while (fits_so_many + 1 < intervals) {
    const std::int64_t middle = (fits_so_many + intervals) / 2;
    (all_fit(shape, middle * unit) ? fits_so_many : intervals) = middle;
  }
  return fits_so_many * unit;
}

double ReplicaCosts::slowest_stage(const ReplicaShape& shape, const MicrobatchLoad& load) const {
  std::vector<std::int32_t> ranks(static_cast<std::size_t>(shape.tp));
  std::iota(ranks.begin(), ranks.end(), 0);
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

}  // namespace braid::planner
