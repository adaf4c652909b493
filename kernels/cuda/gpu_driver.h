#pragma once

#include <cuda.h>
#include <cuda_runtime.h>
#include <fmt/format.h>

#include "base/error.h"
#include "kernels/cuda/errors.h"

namespace braid::kernels::cuda {

/// A function of the driver, which is not linked: programs start where there is none.
template <typename Function>
Function* driver(const char* name) {
  void* found = nullptr;
  cudaDriverEntryPointQueryResult result{};
  check(cudaGetDriverEntryPointByVersion(name, &found, CUDA_VERSION, cudaEnableDefault, &result));
  if (result != cudaDriverEntryPointSuccess)
    throw Failure(fmt::format("the GPU's driver has no {}; install one for CUDA 13", name));
  return reinterpret_cast<Function*>(found);
}

inline void check_driver(CUresult result, const char* doing) {
  if (result != CUDA_SUCCESS)
    throw Failure(fmt::format("{} failed ({}); plan for less memory, or end what else runs on the GPU (nvidia-smi)",
                              doing, static_cast<int>(result)));
}

}  // namespace braid::kernels::cuda
