#pragma once

#include "kernels/device.h"

namespace braid::exec {

/// Shared by all tests of a program.
inline kernels::Device& cpu_device() {
  static const std::unique_ptr<kernels::Device> device = kernels::make_cpu_device();
  return *device;
}

inline kernels::Device& reference_device() {
  static const std::unique_ptr<kernels::Device> device = kernels::make_reference_device();
  return *device;
}

}  // namespace braid::exec
