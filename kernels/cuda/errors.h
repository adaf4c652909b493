#pragma once

#include <source_location>

#include <cuda_runtime.h>

namespace braid::kernels::cuda {

/// Throws Failure with the file and line, what CUDA says and what helps, unless `status` is a success.
void check(cudaError_t status, std::source_location where = std::source_location::current());

}  // namespace braid::kernels::cuda
