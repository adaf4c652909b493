#include "planner/latency/clock_schedule.h"

#include <map>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "costmodel/profile/derive.h"
#include "planner/random_plans.h"

namespace braid::planner {
namespace {

/// What the executor is to rely on: nothing is left out or done twice, whatever needs a result comes after it, and who
/// asks again gets the same list.
RC_GTEST_PROP(ClockSchedule, LaunchesEveryOperatorOnceAfterWhatItNeeds, ()) {
  costmodel::Profile profile = costmodel::analytic_profile("a40", costmodel::DataType::bf16);
  profile.interconnect.intra_node = {"wire", 1e11, 1e-6};
  const costmodel::CostModel cost(std::move(profile));
  const LaunchPricing pricing = device_pricing(cost);
  const costmodel::BackboneShape backbone = testing::any_backbone();
  const costmodel::StageShape stage{*rc::gen::inRange(1, 4), *rc::gen::arbitrary<bool>(), *rc::gen::arbitrary<bool>(),
                                    *rc::gen::element(1, 2, 4)};
  std::vector<costmodel::MicrobatchLoad> loads;
  for (int h = *rc::gen::inRange(1, 4); h > 0; --h) {
    std::vector<workload::SampleSize> sizes;
    const workload::Task task = testing::any_task(h, sizes);
    costmodel::MicrobatchLoad& load = loads.emplace_back();
    load.tokens = load.scored = task.max_length;
    load.sequences = {{0, task.max_length}};
    load.tasks = {{task.adapter, load.tokens}};
    load.kernels = costmodel::AdapterKernels::side_by_side;
  }
  const auto pass = *rc::gen::element(costmodel::Pass::forward, costmodel::Pass::backward);
  const auto rule = *rc::gen::element(LaunchRule::shallowest, LaunchRule::earliest_start);
  const auto made = [&] {
    return clock_schedule(backbone, stage, loads, pass, cost.storage(), rule, pricing, cost.overlap_slowdown());
  };
  const ClockSchedule schedule = made();
  std::map<std::pair<std::int32_t, OperatorVertex>, std::size_t> launched;  // at which place
  for (std::size_t place = 0; place < schedule.launches.entries.size(); ++place) {
    const Subgraph& subgraph = schedule.subgraphs[planner::place(schedule.launches.entries[place].subgraph)];
    for (const SubgraphPart& part : subgraph.parts) {
      for (const OperatorVertex vertex : part.vertices)
        RC_ASSERT(launched.emplace(std::pair(part.htask, vertex), place).second);
    }
  }
  std::size_t vertices = 0;
  for (std::size_t h = 0; h < schedule.graphs.size(); ++h) {
    const OperatorGraph& graph = schedule.graphs[h];
    vertices += num_vertices(graph);
    const auto htask = static_cast<std::int32_t>(h);
    for (auto [edge, end] = boost::edges(graph); edge != end; ++edge)
      RC_ASSERT(launched.at({htask, source(*edge, graph)}) <= launched.at({htask, target(*edge, graph)}));
  }
  RC_ASSERT(launched.size() == vertices);
  RC_ASSERT(made().launches.entries == schedule.launches.entries);
}

}  // namespace
}  // namespace braid::planner
