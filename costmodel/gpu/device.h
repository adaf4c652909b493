#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"
#include "costmodel/shapes/data_type.h"

namespace braid::costmodel {

/// GPUs whose kernels behave alike, so that efficiencies fitted on one hold for the others.
enum class Generation { volta, ampere, ampere_ga10x, ada, hopper };

/// A GPU as its datasheet gives it; rates are dense, one direction, decimal.
struct Device {
  std::string_view name;
  Generation generation = Generation::ampere;
  double bf16_flops = 0;  ///< f16 where the GPU has no bf16
  double f32_flops = 0;   ///< without tensor cores, as PyTorch multiplies f32 unless tf32 is allowed
  Bytes memory_bytes = 0;
  double memory_bandwidth = 0;  ///< bytes a second
  std::int64_t multiprocessors = 0;
  Bytes l2_bytes = 0;
  double nvlink_bandwidth = 0;  ///< bytes a second, one direction; 0 without
  bool nvswitch = false;
  double power_watts = 0;

  double peak_flops(DataType type) const;
};

/// The GPU of that name; nullptr when none has it.
const Device* find_device(std::string_view name);
/// The same. Throws Error that lists the names.
const Device& device_of(std::string_view name);
std::vector<std::string> device_names();

/// The GPU that CUDA calls so, such as "NVIDIA H200"; nullptr for any other.
const Device* find_device_of_machine(std::string_view machine);

}  // namespace braid::costmodel
