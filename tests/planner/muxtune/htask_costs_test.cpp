#include "planner/muxtune/htask_costs.h"

#include <numeric>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "planner/plan/task_load.h"

namespace braid::planner {
namespace {

using costmodel::AdapterKernels;
using costmodel::MicrobatchLoad;

/// Sequences of one length; no two tasks' lengths are alike.
MicrobatchLoad any_load(std::int64_t task, AdapterKernels kernels) {
  const std::int64_t length = 8 * *rc::gen::inRange<std::int64_t>(2, 40) + task, rows = *rc::gen::inRange(1, 9);
  costmodel::AdapterShape adapter;
  adapter.rank = *rc::gen::element(4, 16, 64);
  adapter.alpha = 32;
  adapter.targets = {true, *rc::gen::arbitrary<bool>(), true, true};
  MicrobatchLoad load;
  load.kernels = kernels;
  load.tokens = rows * length;
  load.scored = rows * (length - 1);
  load.sequences.assign(static_cast<std::size_t>(rows), {0, length});
  load.tasks = {{adapter, load.tokens}};
  return load;
}

/// Tokens of a run are rounded up, by less than this share.
constexpr double kRounding = 1.0 / 256;
constexpr std::int64_t kNotRounded = 512;

RC_GTEST_PROP(HTaskCosts, AreWhatTheCostModelSaysOfTheTasksTogether, ()) {
  const AdapterKernels kernels = *rc::gen::element(AdapterKernels::separate, AdapterKernels::side_by_side);
  const costmodel::CostModel cost(
      costmodel::analytic_profile(*rc::gen::element<std::string>("a40", "h100"), costmodel::DataType::bf16));
  const costmodel::BackboneShape backbone = costmodel::builtin_backbone("llama2-7b");
  const costmodel::StageShape stage{4, *rc::gen::arbitrary<bool>(), *rc::gen::arbitrary<bool>(),
                                    *rc::gen::element(1, 2)};
  std::vector<MicrobatchLoad> loads;
  const auto count = *rc::gen::inRange<std::int64_t>(1, 7);
  for (std::int64_t task = 0; task < count; ++task) loads.push_back(any_load(task, kernels));
  RunPrices prices(cost, backbone);
  HTaskCosts costs(static_cast<std::int32_t>(count));
  costs.ask(prices, stage, loads);
  costmodel::StageLatency latency(cost, backbone);
  for (std::int32_t first = 0; first < costs.tasks(); ++first) {
    for (std::int32_t last = first; last < costs.tasks(); ++last) {
      const MicrobatchLoad run =
          merge(std::span(loads).subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(last - first + 1)));
      const double forward = latency.estimate(stage, run, costmodel::Pass::forward).seconds;
      const double backward = latency.estimate(stage, run, costmodel::Pass::backward).seconds;
      const double most = (1 + 1e-9) * (run.tokens > kNotRounded ? 1 + kRounding : 1);
      RC_ASSERT(costs.forward_seconds(first, last) > (1 - 1e-9) * forward);
      RC_ASSERT(costs.forward_seconds(first, last) < most * forward);
      RC_ASSERT(costs.backward_seconds(first, last) > (1 - 1e-9) * backward);
      RC_ASSERT(costs.backward_seconds(first, last) < most * backward);
    }
  }
}

}  // namespace
}  // namespace braid::planner
