#include <algorithm>
#include <cstddef>

#include <cuda_runtime.h>
#include <dlfcn.h>

#include "kernels/cuda/errors.h"
#include "kernels/cuda/gpu_memory.h"

namespace braid::kernels::cuda {
namespace {

/// NVML's answer, as nvml.h has its second version: what the driver keeps for itself is not in use.
struct NvmlMemory {
  unsigned version = sizeof(NvmlMemory) | 2U << 24;
  unsigned long long total = 0, reserved = 0, free = 0, used = 0;
};

/// Bytes in use on the GPU, which NVML tells without a context there; 0 where there is no NVML.
Bytes in_use_before(int ordinal) {
  char bus[32] = {};
  check(cudaDeviceGetPCIBusId(bus, sizeof bus, ordinal));
  void* library = ::dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!library) return 0;
  const auto begin = reinterpret_cast<int (*)()>(::dlsym(library, "nvmlInit_v2"));
  const auto end = reinterpret_cast<int (*)()>(::dlsym(library, "nvmlShutdown"));
  const auto find =
      reinterpret_cast<int (*)(const char*, void**)>(::dlsym(library, "nvmlDeviceGetHandleByPciBusId_v2"));
  const auto ask = reinterpret_cast<int (*)(void*, NvmlMemory*)>(::dlsym(library, "nvmlDeviceGetMemoryInfo_v2"));
  NvmlMemory memory{};
  void* gpu = nullptr;
  const bool told = begin && end && find && ask && begin() == 0 && find(bus, &gpu) == 0 && ask(gpu, &memory) == 0;
  if (begin && end) end();
  ::dlclose(library);
  return told ? static_cast<Bytes>(memory.used) : 0;
}

struct InUse {
  std::size_t free = 0, total = 0;
};

InUse in_use() {
  InUse now;
  check(cudaMemGetInfo(&now.free, &now.total));
  return now;
}

}  // namespace

MemoryWatch::MemoryWatch(int ordinal) : others_(in_use_before(ordinal)) {}

Bytes MemoryWatch::memory() const {
  return static_cast<Bytes>(in_use().total);
}

Bytes MemoryWatch::held() {
  const InUse now = in_use();
  const Bytes held = std::max<Bytes>(0, static_cast<Bytes>(now.total - now.free) - others_);
  most_ = std::max(most_, held);
  return held;
}

}  // namespace braid::kernels::cuda
