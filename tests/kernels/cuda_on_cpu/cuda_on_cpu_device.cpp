#include "cuda_on_cpu_device.h"

#include <cstring>

#include "kernels/cuda/memory.h"
#include "kernels/cuda/table.h"
#include "kernels/host_memory.h"
#include "simt_on_cpu.h"

namespace braid::kernels {
namespace cuda {
namespace {

thread_local costmodel::DataType activations = costmodel::DataType::f32;

}  // namespace

costmodel::DataType activation_type() {
  return activations;
}

std::shared_ptr<void> device_copy(const void* host, std::int64_t bytes) {
  const std::shared_ptr<std::byte[]> memory(new std::byte[static_cast<std::size_t>(bytes)]);
  std::memcpy(memory.get(), host, static_cast<std::size_t>(bytes));
  return memory;
}

namespace {

/// The numbers as f32, row after row.
std::vector<float> widened(ConstMatrix matrix) {
  std::vector<float> numbers(static_cast<std::size_t>(matrix.rows * matrix.columns));
  copy(matrix, {numbers.data(), matrix.rows, matrix.columns});
  return numbers;
}

}  // namespace

/// In place of cuBLASLt's.
void large_matmul(ConstMatrix a, Transpose a_transpose, ConstMatrix b, Transpose b_transpose, Matrix c) {
  const std::vector<float> first = widened(a), second = widened(b);
  std::vector<float> sums(static_cast<std::size_t>(c.rows * c.columns));
  const Matrix product(sums.data(), c.rows, c.columns);
  reference::matmul(1, {first.data(), a.rows, a.columns}, a_transpose, {second.data(), b.rows, b.columns}, b_transpose,
                    0, product);
  copy(product, c);
}

namespace {

class CudaOnCpuDevice final : public HostMemoryDevice {
 public:
  CudaOnCpuDevice(costmodel::DataType type, std::uint64_t seed) : type_(type) {
    cuda::activations = type;
    on_cpu::set_order(seed);
  }
  std::string_view name() const override { return "cuda on cpu"; }
  const Kernels& kernels() const override { return table(); }
  costmodel::DataType activations() const override { return type_; }
  std::vector<std::string> library_versions() const override { return {}; }

 private:
  costmodel::DataType type_;
};

}  // namespace
}  // namespace cuda

std::unique_ptr<Device> make_cuda_on_cpu_device(costmodel::DataType activations, std::uint64_t seed) {
  return std::make_unique<cuda::CudaOnCpuDevice>(activations, seed);
}

}  // namespace braid::kernels
