#pragma once

#include <memory>
#include <string>

namespace braid::kernels::cuda {

/// What other processes of this host, or other threads of this one, open memory by that cudaMalloc gave.
std::string name_memory(void* memory);
/// As long as what is returned lives, this thread's GPU reads that memory at the address. Throws Failure where the two
/// GPUs do not reach each other's memory.
std::shared_ptr<const void> open_memory(const std::string& name);

}  // namespace braid::kernels::cuda
