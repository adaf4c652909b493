#include <cstring>

#include <cuda_runtime.h>
#include <unistd.h>

#include "base/error.h"
#include "kernels/cuda/errors.h"
#include "kernels/cuda/gpu_shared_memory.h"

namespace braid::kernels::cuda {
namespace {

struct Name {
  pid_t process;
  int gpu;
  void* address;  // within that process
  cudaIpcMemHandle_t handle;
};

int current_gpu() {
  int gpu = 0;
  check(cudaGetDevice(&gpu));
  return gpu;
}

/// A handle cannot be opened by the process that made it: its threads see each other's memory as it is.
void reach(int gpu) {
  if (gpu == current_gpu()) return;
  const cudaError_t status = cudaDeviceEnablePeerAccess(gpu, 0);
  if (status == cudaErrorPeerAccessAlreadyEnabled) {
    cudaGetLastError();  // which is no error of a later call
    return;
  }
  check(status);
}

}  // namespace

std::string name_memory(void* memory) {
  Name name{::getpid(), current_gpu(), memory, {}};
  check(cudaIpcGetMemHandle(&name.handle, memory));
  return {reinterpret_cast<const char*>(&name), sizeof name};
}

std::shared_ptr<const void> open_memory(const std::string& told) {
  BRAID_CHECK(told.size() == sizeof(Name), "memory is named by {} bytes", told.size());
  Name name{};
  std::memcpy(&name, told.data(), sizeof name);
  if (name.process == ::getpid()) {
    reach(name.gpu);
    return {name.address, [](const void*) {}};
  }
  void* opened = nullptr;
  check(cudaIpcOpenMemHandle(&opened, name.handle, cudaIpcMemLazyEnablePeerAccess));
  return {opened, [](const void* address) { cudaIpcCloseMemHandle(const_cast<void*>(address)); }};
}

}  // namespace braid::kernels::cuda
