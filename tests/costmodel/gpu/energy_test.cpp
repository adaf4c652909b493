#include "costmodel/gpu/energy.h"

#include <gtest/gtest.h>

#include "costmodel/profile/cost_model.h"

namespace braid::costmodel {
namespace {

TEST(Energy, IsPowerTimesTimeWhenAllAreBusyOrAllIdle) {
  for (const std::string& name : device_names()) {
    const Power power = power_of(device_of(name));
    EXPECT_GT(power.idle_watts, 0);
    EXPECT_LT(power.idle_watts, power.busy_watts);
    EXPECT_DOUBLE_EQ(energy_joules(power, 4, 10, 40), 4 * 10 * power.busy_watts);
    EXPECT_DOUBLE_EQ(energy_joules(power, 4, 10, 0), 4 * 10 * power.idle_watts);
  }
}

/// A step's worth of one operator on one GPU that does nothing else.
double joules(Profile profile, const OperatorCall& call, double clock) {
  profile.clock = clock;
  const double seconds = CostModel(profile).estimate(call).seconds;
  return energy_joules(power_of(device_of(profile.device), clock), 1, seconds, seconds);
}

TEST(Energy, ASlowerClockSavesEnergyOnProductsUntilIdlePowerEatsIt) {
  const Profile profile = analytic_profile("a100", DataType::bf16);
  const OperatorCall product{Operator::linear, Pass::forward, {4096, 4096}, 8192};
  EXPECT_LT(joules(profile, product, 0.8), joules(profile, product, 1));
  EXPECT_GT(joules(profile, product, 0.1), joules(profile, product, 0.4));
}

TEST(Energy, ASlowerClockSlowsProductsByAsMuchAndTheMemoryNotAtAll) {
  for (const char* gpu : {"a40", "a100", "h100"}) {
    Profile full = analytic_profile(gpu, DataType::bf16), half = full;
    half.clock = 0.5;
    const CostModel fast(full), slow(half);
    const auto ratio = [&](const OperatorCall& call) {
      return slow.estimate(call).seconds / fast.estimate(call).seconds;
    };
    EXPECT_NEAR(ratio({Operator::linear, Pass::forward, {8192, 8192}, 16384}), 2, 0.01) << gpu;
    EXPECT_EQ(ratio({Operator::residual, Pass::forward, {8192}, 16384}), 1) << gpu;
    for (const std::int64_t tokens : {64, 1024}) {
      const double between = ratio({Operator::linear, Pass::forward, {4096, 4096}, tokens});
      EXPECT_GE(between, 1);
      EXPECT_LE(between, 2 + 1e-9);
    }
  }
}

}  // namespace
}  // namespace braid::costmodel
