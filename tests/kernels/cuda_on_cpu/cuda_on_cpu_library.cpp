#include <cstdlib>

#include "cuda_on_cpu_device.h"

/// What kernels/cuda_device.cpp asks of the library that it loads: this one's GPUs are the processor. Eight, or as many
/// as a test says.
extern "C" __attribute__((visibility("default"))) int braid_count_cuda_devices() {
  const char* told = std::getenv("BRAID_GPUS_ON_CPU");
  return told ? std::atoi(told) : 8;
}

extern "C" __attribute__((visibility("default"))) braid::kernels::Device* braid_make_cuda_device(
    int /*ordinal*/, braid::kernels::Arithmetic arithmetic) {
  return braid::kernels::make_cuda_on_cpu_device(arithmetic).release();
}
