#include "costmodel/work/stage_latency.h"

#include <cmath>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "costmodel/shapes.h"

namespace braid::costmodel {
namespace {

RC_GTEST_PROP(StageLatency, RemembersWhatTheCostModelSays, ()) {
  const CostModel cost(analytic_profile("a100", DataType::bf16));
  const BackboneShape backbone = small_backbone();
  StageLatency latency(cost, backbone);
  // Few different numbers, so that questions come again and hashes meet.
  for (int question = 0; question < 60; ++question) {
    const auto small = [] { return *rc::gen::inRange<std::int64_t>(1, 4); };
    const StageShape stage{small(), *rc::gen::arbitrary<bool>(), *rc::gen::arbitrary<bool>(), small()};
    MicrobatchLoad load = load_of(adapter(small(), {Module::q}), {8 * small(), 8 * small()});
    if (*rc::gen::arbitrary<bool>()) load.kernels = AdapterKernels::fused;
    const Pass pass = *rc::gen::element(Pass::forward, Pass::backward);
    const Estimate expected = cost.estimate(stage_operators(backbone, stage, load, pass, cost.storage()));
    // But for the order in which the head's time is added.
    const Estimate told = latency.estimate(stage, load, pass);
    RC_ASSERT(std::abs(told.seconds / expected.seconds - 1) < 1e-12);
    RC_ASSERT(std::abs(told.extrapolated_seconds / expected.extrapolated_seconds - 1) < 1e-12);
  }
}

}  // namespace
}  // namespace braid::costmodel
