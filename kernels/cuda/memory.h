#pragma once

#include <cstdint>
#include <memory>

#include "costmodel/shapes/data_type.h"
#include "costmodel/work/operators.h"
#include "kernels/matmul.h"
#include "kernels/matrix.h"

/// What kernels ask of the device that they run on: device.cu answers where there is a GPU, tests answer for the
/// processor.
namespace braid::kernels::cuda {

/// What activations are on this thread's device.
costmodel::DataType activation_type();

/// Memory of the device with a copy of what is on the host.
std::shared_ptr<void> device_copy(const void* host, std::int64_t bytes);

/// Whether choose_kernels gave such calls to the second kernel.
bool takes_second_kernel(costmodel::Operator op, costmodel::Pass pass, const costmodel::OperatorShape& shape,
                         std::int64_t amount);

/// A large product, as `matmul` has it, of matrices a and b of one type: cuBLASLt's, or where there is none the kernel
/// of matmul.cu.
void large_matmul(ConstMatrix a, Transpose a_transpose, ConstMatrix b, Transpose b_transpose, Matrix c);

}  // namespace braid::kernels::cuda
