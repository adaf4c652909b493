#include "cuda_on_cpu_device.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "kernels/cuda/library_attention.h"
#include "kernels/cuda/memory.h"
#include "kernels/cuda/table.h"
#include "kernels/cuda/tile_map.h"
#include "kernels/host_memory.h"
#include "simt_on_cpu.h"

namespace braid::kernels {
namespace cuda {
namespace {

thread_local Arithmetic current = Arithmetic::f32;
thread_local std::vector<costmodel::KernelChoice> chosen;

}  // namespace

costmodel::DataType activation_type() {
  return current == Arithmetic::bf16 ? costmodel::DataType::bf16 : costmodel::DataType::f32;
}

bool takes_second_kernel(costmodel::Operator op, costmodel::Pass pass, const costmodel::OperatorShape& shape,
                         std::int64_t amount) {
  return costmodel::takes_second_kernel(chosen, op, pass, shape, amount);
}

LibraryAttention& library_attention() {
  thread_local LibraryAttention attention;
  return attention;
}

std::shared_ptr<void> device_copy(const void* host, std::int64_t bytes) {
  const std::shared_ptr<std::byte[]> memory(new std::byte[static_cast<std::size_t>(bytes)]);
  std::memcpy(memory.get(), host, static_cast<std::size_t>(bytes));
  return memory;
}

namespace {

/// To the nearest of 10 bits behind the point, as tensor cores read f32.
float tf32(float number) {
  constexpr std::uint32_t kDropped = (1U << 13) - 1;
  return std::bit_cast<float>((std::bit_cast<std::uint32_t>(number) + kDropped / 2 + 1) & ~kDropped);
}

/// The numbers as f32, row after row, as they are multiplied.
std::vector<float> multiplied(ConstMatrix matrix) {
  std::vector<float> numbers(static_cast<std::size_t>(matrix.rows * matrix.columns));
  copy(matrix, {numbers.data(), matrix.rows, matrix.columns});
  if (current == Arithmetic::tf32) std::ranges::transform(numbers, numbers.begin(), tf32);
  return numbers;
}

void multiply_now(ConstMatrix a, Transpose a_transpose, ConstMatrix b, Transpose b_transpose, Matrix c) {
  const std::vector<float> first = multiplied(a), second = multiplied(b);
  std::vector<float> sums(static_cast<std::size_t>(c.rows * c.columns));
  const Matrix product(sums.data(), c.rows, c.columns);
  reference::matmul(1, {first.data(), a.rows, a.columns}, a_transpose, {second.data(), b.rows, b.columns}, b_transpose,
                    0, product);
  copy(product, c);
}

}  // namespace

/// In place of cuBLASLt's.
void large_matmul(ConstMatrix a, Transpose a_transpose, ConstMatrix b, Transpose b_transpose, Matrix c) {
  on_cpu::call([=] { multiply_now(a, a_transpose, b, b_transpose, c); });
}

TileMap map_tiles(ConstMatrix matrix, int box_rows) {
  TileMap map;
  map.words[0] = reinterpret_cast<std::uintptr_t>(matrix.data);
  const std::int64_t sizes[] = {matrix.rows, matrix.columns, matrix.stride, box_rows};
  std::copy(std::begin(sizes), std::end(sizes), map.words + 1);
  return map;
}
bool has_warpgroups() {
  return true;
}
/// Few, so that blocks make several tiles.
int multiprocessors() {
  return 2;
}

namespace {

class CudaOnCpuDevice final : public HostMemoryDevice {
 public:
  CudaOnCpuDevice(Arithmetic arithmetic, std::uint64_t seed) {
    current = arithmetic;
    chosen.clear();
    on_cpu::drop_held();
    on_cpu::set_order(seed);
  }
  std::string_view name() const override { return "cuda on cpu"; }
  const Kernels& kernels() const override { return table(); }
  costmodel::DataType activations() const override { return activation_type(); }
  bool joins_products() const override {
    return std::ranges::find(chosen, costmodel::Operator::linear, &costmodel::KernelChoice::op) != chosen.end();
  }
  bool has_second_kernel(costmodel::Operator op) override {
    return current == Arithmetic::bf16 && (op == costmodel::Operator::linear || op == costmodel::Operator::attention ||
                                           op == costmodel::Operator::launch);
  }
  void choose_kernels(std::vector<costmodel::KernelChoice> choices) override {
    Device::choose_kernels(choices);
    chosen = std::move(choices);
  }
  std::vector<std::string> library_versions() const override { return {}; }

  void begin_subgraph(const SubgraphCall& call) override {
    on_cpu::run_held();
    if (takes_second_kernel(costmodel::Operator::launch, call.pass, {}, call.tokens)) on_cpu::hold();
  }
  void end_subgraph() override { on_cpu::run_held(); }
  void drop_subgraph() override { on_cpu::drop_held(); }
  void upload(std::span<const std::byte> from, void* to) override {
    if (!on_cpu::holds()) return HostMemoryDevice::upload(from, to);
    on_cpu::call([kept = std::vector<std::byte>(from.begin(), from.end()), to] {
      std::ranges::copy(kept, static_cast<std::byte*>(to));
    });
  }
  void download(const void* from, std::span<std::byte> to) override {
    on_cpu::run_held();
    HostMemoryDevice::download(from, to);
  }
  void copy(const void* from, void* to, Bytes bytes) override {
    on_cpu::run_held();
    HostMemoryDevice::copy(from, to, bytes);
  }
  void discard(void* first, Bytes bytes) override {
    on_cpu::call([=, this] { HostMemoryDevice::discard(first, bytes); });
  }
  void release(void* base, Bytes bytes) override {
    on_cpu::run_held();
    HostMemoryDevice::release(base, bytes);
  }
  void free(void* memory) override {
    on_cpu::run_held();
    HostMemoryDevice::free(memory);
  }
  std::unique_ptr<Event> record() override {
    on_cpu::run_held();
    return HostMemoryDevice::record();
  }
  /// Of the host's clock, which tells nothing of what is held.
  std::unique_ptr<Event> mark() override { return HostMemoryDevice::record(); }
  void wait() override { on_cpu::run_held(); }
};

}  // namespace
}  // namespace cuda

std::int64_t calls_in_graphs() {
  return cuda::on_cpu::calls_held();
}

std::unique_ptr<Device> make_cuda_on_cpu_device(Arithmetic arithmetic, std::uint64_t seed) {
  return std::make_unique<cuda::CudaOnCpuDevice>(arithmetic, seed);
}

}  // namespace braid::kernels
