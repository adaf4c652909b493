#pragma once

#include <cstdint>
#include <string>

#include <cublasLt.h>
#include <cuda_runtime_api.h>

#include "kernels/gpu_probe/errors.h"

namespace braid::gpu_probe {

/// Throws Failure when `doing` ("copying to the GPU") did not succeed.
inline void check(cudaError_t result, const char* doing) {
  if (result != cudaSuccess)
    throw Failure(std::string(doing) + " failed (" + cudaGetErrorString(result) +
                  "); look at the GPU with nvidia-smi and run again");
}
inline void check(cublasStatus_t result, const char* doing) {
  if (result != CUBLAS_STATUS_SUCCESS)
    throw Failure(std::string(doing) + " failed (" + cublasLtGetStatusString(result) +
                  "); check that the libcublasLt found at run time is of the CUDA version built with");
}

/// Memory on the GPU. Throws Failure that names the size when there is not enough.
class DeviceBuffer {
 public:
  explicit DeviceBuffer(std::int64_t bytes) : bytes_(bytes) {
    if (cudaMalloc(&data_, static_cast<std::size_t>(bytes)) != cudaSuccess)
      throw Failure("the GPU has no " + std::to_string(bytes / 1'000'000 + 1) +
                    " MB free; end what else runs on it, see nvidia-smi");
  }
  ~DeviceBuffer() { cudaFree(data_); }
  DeviceBuffer(const DeviceBuffer&) = delete;
  DeviceBuffer& operator=(const DeviceBuffer&) = delete;

  char* data() const { return static_cast<char*>(data_); }
  std::int64_t bytes() const { return bytes_; }

 private:
  void* data_ = nullptr;
  std::int64_t bytes_ = 0;
};

}  // namespace braid::gpu_probe
