#include <cstring>

#include "kernels/cuda/gpu_state.h"
#include "kernels/cuda/memory.h"
#include "kernels/cuda/simt.h"

namespace braid::kernels::cuda {
namespace {

thread_local GpuState* current = nullptr;

[[noreturn]] void fail(std::source_location where, const std::string& said, const std::string& remedy) {
  std::string_view file = where.file_name();
  if (const std::size_t root = file.rfind("kernels/"); root != std::string_view::npos) file.remove_prefix(root);
  throw Failure(fmt::format("{}:{}: {}; {}", file, where.line(), said, remedy));
}

}  // namespace

void check(cudaError_t status, std::source_location where) {
  if (status == cudaSuccess) return;
  cudaGetLastError();  // which else the next launch would be told
  const std::string said = fmt::format("CUDA says {} ({})", cudaGetErrorString(status), cudaGetErrorName(status));
  switch (status) {
    case cudaErrorMemoryAllocation:
      fail(where, said, "plan for less memory, or end what else runs on the GPU (nvidia-smi)");
    case cudaErrorNoDevice:
    case cudaErrorInsufficientDriver:
      fail(where, said, "check that nvidia-smi shows a GPU and a driver for CUDA 13");
    case cudaErrorNoKernelImageForDevice:
      fail(where, said, "build with this GPU's architecture in BRAID_CUDA_ARCHITECTURES");
    default:
      fail(where, said, "look at the GPU with nvidia-smi, and run again under compute-sanitizer to see where");
  }
}

void check(cublasStatus_t status, std::source_location where) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  fail(where, fmt::format("cuBLASLt says {}", cublasLtGetStatusString(status)),
       "check that the libcublasLt found at run time is of the CUDA version built with");
}

GpuState& gpu_state() {
  BRAID_CHECK(current, "a kernel of a GPU without one");
  return *current;
}
void set_gpu_state(GpuState* state) {
  current = state;
}

PinnedRing::PinnedRing() {
  void* memory = nullptr;
  check(cudaMallocHost(&memory, 2 * kHalf));
  memory_ = static_cast<char*>(memory);
  for (cudaEvent_t& event : left_) check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
}
PinnedRing::~PinnedRing() {
  cudaFreeHost(memory_);
  for (const cudaEvent_t event : left_) cudaEventDestroy(event);
}

void PinnedRing::mark_left(cudaStream_t stream) {
  check(cudaEventRecord(left_[1 - half_], stream));
}

void* PinnedRing::take(std::int64_t bytes, cudaStream_t stream) {
  constexpr std::int64_t kAlignment = 64;
  BRAID_CHECK(bytes <= kHalf, "{} bytes of a ring of {}", bytes, kHalf);
  if (turns(bytes)) {
    check(cudaEventRecord(left_[half_], stream));
    half_ = 1 - half_;
    used_ = 0;
    check(cudaEventSynchronize(left_[half_]));
  }
  char* taken = memory_ + half_ * kHalf + used_;
  used_ += (bytes + kAlignment - 1) / kAlignment * kAlignment;
  return taken;
}

cudaStream_t compute_stream() {
  return gpu_state().stream;
}
costmodel::DataType activation_type() {
  return gpu_state().arithmetic == Arithmetic::bf16 ? costmodel::DataType::bf16 : costmodel::DataType::f32;
}
bool takes_second_kernel(costmodel::Operator op, costmodel::Pass pass, const costmodel::OperatorShape& shape,
                         std::int64_t amount) {
  return costmodel::takes_second_kernel(gpu_state().choices, op, pass, shape, amount);
}
LibraryAttention& library_attention() {
  return gpu_state().attention;
}

void note_call(std::uint64_t what) {
  gpu_state().subgraphs.note(what);
}

void bring(const void* host, void* to, std::int64_t bytes) {
  GpuState& gpu = gpu_state();
  const auto size = static_cast<std::size_t>(bytes);
  if (bytes > PinnedRing::kHalf) {
    gpu.subgraphs.interrupt();
    check(cudaMemcpyAsync(to, host, size, cudaMemcpyHostToDevice, gpu.stream));
    check(cudaStreamSynchronize(gpu.stream));
    return;
  }
  void* pinned = gpu.pinned(bytes);
  std::memcpy(pinned, host, size);
  check(cudaMemcpyAsync(to, pinned, size, cudaMemcpyHostToDevice, gpu.stream));
  note_call(kCopyCall);
}

Scratch::Scratch(std::int64_t bytes) {
  if (bytes == 0) return;
  memory_ = gpu_state().scratch.take(bytes);
  taken_ = bytes;
}
Scratch::Scratch(const void* host, std::int64_t bytes) : Scratch(0) {
  if (bytes == 0) return;
  memory_ = gpu_state().subgraphs.table(host, bytes);
  if (memory_) return;
  memory_ = gpu_state().scratch.take(bytes);
  taken_ = bytes;
  bring(host, memory_, bytes);
}
Scratch::~Scratch() {
  if (taken_ > 0) gpu_state().scratch.give_back(memory_, taken_);
}

std::shared_ptr<void> device_copy(const void* host, std::int64_t bytes) {
  void* memory = nullptr;
  check(cudaMalloc(&memory, static_cast<std::size_t>(bytes)));
  std::shared_ptr<void> kept(memory, [](void* address) { cudaFree(address); });
  // In the compute stream, which waits for no other.
  gpu_state().subgraphs.interrupt();
  check(cudaMemcpyAsync(memory, host, static_cast<std::size_t>(bytes), cudaMemcpyHostToDevice, compute_stream()));
  check(cudaStreamSynchronize(compute_stream()));
  return kept;
}

}  // namespace braid::kernels::cuda
