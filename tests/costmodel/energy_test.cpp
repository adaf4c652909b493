#include "costmodel/energy.h"

#include <gtest/gtest.h>

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

TEST(Energy, ASlowerClockSavesEnergyOnProductsUntilIdlePowerEatsIt) {
  const Power full = power_of(device_of("a100"));
  const auto joules = [&](double clock) {
    const double seconds = seconds_at_clock(1, 0, clock);
    return energy_joules(at_clock(full, clock), 1, seconds, seconds);
  };
  EXPECT_DOUBLE_EQ(joules(1), full.busy_watts);
  EXPECT_LT(joules(0.8), joules(1));
  EXPECT_GT(joules(0.1), joules(0.4));
  // Memory keeps its pace: nothing but power falls.
  EXPECT_DOUBLE_EQ(seconds_at_clock(0, 3, 0.5), 3);
  EXPECT_DOUBLE_EQ(seconds_at_clock(2, 3, 0.5), 7);
}

}  // namespace
}  // namespace braid::costmodel
