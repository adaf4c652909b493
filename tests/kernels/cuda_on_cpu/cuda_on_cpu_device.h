#pragma once

#include "kernels/device.h"

namespace braid::kernels {

/// The kernels of kernels/cuda on this processor, thread by thread as a GPU runs them, and so for tiny shapes alone.
/// `seed` draws the order in which a block's threads take turns. One for each thread at a time.
std::unique_ptr<Device> make_cuda_on_cpu_device(Arithmetic arithmetic, std::uint64_t seed = 1);

/// How many calls all threads' devices have held back until their subgraph ended.
std::int64_t calls_in_graphs();

}  // namespace braid::kernels
