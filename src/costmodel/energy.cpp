#include "costmodel/energy.h"

#include "base/error.h"

namespace braid::costmodel {

Power power_of(const Device& device) {
  constexpr double kIdleShare = 0.15;
  return {kIdleShare * device.power_watts, device.power_watts};
}

Power at_clock(Power power, double clock) {
  BRAID_CHECK(clock > 0 && clock <= 1, "a clock of {} of the full frequency", clock);
  return {power.idle_watts, power.idle_watts + (power.busy_watts - power.idle_watts) * clock * clock * clock};
}

double seconds_at_clock(double product_seconds, double other_seconds, double clock) {
  BRAID_CHECK(clock > 0 && clock <= 1, "a clock of {} of the full frequency", clock);
  return product_seconds / clock + other_seconds;
}

double energy_joules(Power power, double gpus, double span_seconds, double busy_seconds) {
  return gpus * span_seconds * power.idle_watts + busy_seconds * (power.busy_watts - power.idle_watts);
}

}  // namespace braid::costmodel
