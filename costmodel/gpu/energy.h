#pragma once

#include "costmodel/gpu/device.h"

namespace braid::costmodel {

/// What a GPU draws.
struct Power {
  double idle_watts = 0;
  double busy_watts = 0;
};

/// Busy at the datasheet's limit; idle at 15 % of it, as nvidia-smi shows an A100 of 400 W at about 60 and an H100 of
/// 700 W at 70 to 110. At `clock` of the full frequency, in (0, 1], voltage follows frequency, so that what is above
/// idle falls with its cube (CMOS: capacitance · voltage² · frequency).
Power power_of(const Device& device, double clock = 1);

/// Joules that `gpus` GPUs take over `span_seconds` when their busy times add up to `busy_seconds`.
double energy_joules(Power power, double gpus, double span_seconds, double busy_seconds);

}  // namespace braid::costmodel
