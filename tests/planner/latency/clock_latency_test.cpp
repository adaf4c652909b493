#include "planner/latency/clock_latency.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "planner/random_plans.h"

namespace braid::planner {
namespace {

using namespace testing;
using costmodel::AdapterKernels;
using costmodel::MicrobatchLoad;
using costmodel::Pass;
using costmodel::StageShape;

/// Ranks of one node, and what a few hTasks of a task each take on them in a clock.
struct DrawnClock {
  costmodel::BackboneShape backbone = any_backbone();
  StageShape stage;
  std::vector<std::int32_t> ranks;
  std::vector<MicrobatchLoad> loads;
  Pass pass = Pass::forward;
  LaunchRule rule = *rc::gen::element(LaunchRule::shallowest, LaunchRule::earliest_start);

  explicit DrawnClock(int htasks) {
    stage = {*rc::gen::inRange(1, 9), *rc::gen::arbitrary<bool>(), *rc::gen::arbitrary<bool>(),
             *rc::gen::element(1, 2, 4)};
    for (std::int32_t rank = 0; rank < stage.tp; ++rank) ranks.push_back(rank);
    for (int h = 0; h < htasks; ++h) {
      std::vector<workload::SampleSize> sizes;
      const workload::Task task = any_task(h, sizes);
      const std::int64_t rows = *rc::gen::inRange(1, 5);
      MicrobatchLoad& load = loads.emplace_back();
      load.tokens = load.scored = rows * task.max_length;
      load.sequences.assign(static_cast<std::size_t>(rows), {0, task.max_length});
      load.tasks = {{task.adapter, load.tokens}};
      load.kernels = AdapterKernels::side_by_side;
    }
    pass = *rc::gen::element(Pass::forward, Pass::backward);
  }
};

costmodel::CostModel any_cost() {
  costmodel::Profile profile =
      costmodel::analytic_profile(*rc::gen::element<std::string>("a40", "h100"), costmodel::DataType::bf16);
  profile.interconnect.intra_node = {"wire", std::pow(10, *rc::gen::inRange(8, 13)), 1e-6};
  return costmodel::CostModel(std::move(profile));
}

RC_GTEST_PROP(ClockLatency, AMicrobatchByItselfStallsForAllOfItsCollectives, ()) {
  const costmodel::CostModel cost = any_cost();
  const DrawnClock clock(1);
  ClockLatency latency(cost, clock.backbone);
  const PassTime told = latency.estimate(clock.stage, clock.ranks, clock.loads, clock.pass, clock.rule);
  RC_ASSERT(told.stalled_seconds ==
            latency.collectives(clock.stage, clock.ranks, clock.loads.front(), clock.pass).seconds);
  RC_ASSERT((told.stalled_seconds > 0) == (clock.stage.tp > 1));
  StageShape shard = clock.stage;
  costmodel::StageLatency computes(cost, clock.backbone);
  const double computed = computes.estimate(shard, clock.loads.front(), clock.pass).seconds;
  RC_ASSERT(std::abs(told.total.seconds - told.stalled_seconds - computed) <= 1e-12);
}

RC_GTEST_PROP(ClockLatency, HTasksOfAClockStallForNoMoreThanTheirCollectives, ()) {
  const costmodel::CostModel cost = any_cost();
  const DrawnClock clock(*rc::gen::inRange(2, 5));
  ClockLatency latency(cost, clock.backbone);
  const PassTime told = latency.estimate(clock.stage, clock.ranks, clock.loads, clock.pass, clock.rule);
  PassTime apart;
  for (const MicrobatchLoad& load : clock.loads) apart += latency.alone(clock.stage, clock.ranks, load, clock.pass);
  RC_ASSERT(told.total.seconds <= apart.total.seconds);
  RC_ASSERT(told.stalled_seconds >= 0);
  RC_ASSERT(told.stalled_seconds <= apart.stalled_seconds * 1.01 + 1e-8);
}

/// Nothing runs beside anything without collectives, so that layers add up.
RC_GTEST_PROP(ClockLatency, WithoutCollectivesItIsTheScheduleOfAllLayers, ()) {
  const costmodel::CostModel cost = any_cost();
  DrawnClock clock(*rc::gen::inRange(2, 5));
  clock.stage.tp = 1;
  clock.ranks = {0};
  const auto kind = *rc::gen::element(costmodel::RecomputeKind::none, costmodel::RecomputeKind::selective,
                                      costmodel::RecomputeKind::full);
  if (kind != costmodel::RecomputeKind::none) clock.stage.recompute = {kind, clock.stage.layers};
  ClockLatency latency(cost, clock.backbone);
  const PassTime told = latency.estimate(clock.stage, clock.ranks, clock.loads, clock.pass, clock.rule);
  double apart = 0, host = 0, launched = 0;
  for (const MicrobatchLoad& load : clock.loads) {
    apart += latency.alone(clock.stage, clock.ranks, load, clock.pass).total.seconds;
    for (const costmodel::OperatorCall& call :
         costmodel::stage_operators(clock.backbone, clock.stage, load, clock.pass, cost.storage())) {
      const costmodel::CallPrice price = cost.price(call);
      host += price.launches * cost.profile().launch_seconds;
      if (price.launches > 0) launched += price.seconds;
    }
  }
  const ClockSchedule all = clock_schedule(clock.backbone, clock.stage, clock.loads, clock.pass, cost.storage(),
                                           clock.rule, device_pricing(cost), cost.overlap_slowdown());
  const double together = seconds(all.launches.makespan) + std::max(0.0, host - launched);
  RC_ASSERT(std::abs(told.total.seconds - std::min(apart, together)) <= 1e-6 * told.total.seconds + 1e-9);
}

}  // namespace
}  // namespace braid::planner
