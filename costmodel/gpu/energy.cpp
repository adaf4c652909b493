#include "costmodel/gpu/energy.h"

#include "base/error.h"

namespace braid::costmodel {

Power power_of(const Device& device, double clock) {
  BRAID_CHECK(clock > 0 && clock <= 1, "a clock of {} of the full frequency", clock);
  constexpr double kIdleShare = 0.15;
  const double idle = kIdleShare * device.power_watts;
  return {idle, idle + (device.power_watts - idle) * clock * clock * clock};
}

double energy_joules(Power power, double gpus, double span_seconds, double busy_seconds) {
  return gpus * span_seconds * power.idle_watts + busy_seconds * (power.busy_watts - power.idle_watts);
}

}  // namespace braid::costmodel
