#pragma once

#include "kernels/device.h"

namespace braid::kernels {

/// The kernels of kernels/cuda on this processor, thread by thread as a GPU runs them, and so for tiny shapes alone.
/// Activations are of that type, f32 or bf16. `seed` draws the order in which a block's threads take turns. One for
/// each thread at a time.
std::unique_ptr<Device> make_cuda_on_cpu_device(costmodel::DataType activations, std::uint64_t seed = 1);

}  // namespace braid::kernels
