#include "kernels/gpu_probe/device/probe.h"

#include <algorithm>

#include "kernels/gpu_probe/device/kernels.h"
#include "kernels/gpu_probe/gpu_names.h"

namespace braid::gpu_probe {
namespace {

/// How many L2 caches' worth of copies a cold operand has; its replacement is not strictly oldest first.
constexpr std::int64_t kColdCaches = 4;
/// Of operands in GPU memory, as cuBLASLt takes them to be aligned.
constexpr std::int64_t kAlignment = 256;

std::int64_t aligned(std::int64_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

std::int64_t cold_copies(std::int64_t bytes, std::int64_t cache_bytes) {
  return std::max<std::int64_t>(1, (kColdCaches * cache_bytes + aligned(bytes) - 1) / aligned(bytes));
}

void require_gpu() {
  int count = 0;
  const cudaError_t result = cudaGetDeviceCount(&count);
  if (result != cudaSuccess || count == 0) {
    const std::string why = result == cudaSuccess ? "" : std::string(" (") + cudaGetErrorString(result) + ")";
    throw Failure("no CUDA device" + why + "; run this where a GPU is");
  }
}

/// As CUDA packs it: 13000 is 13.0.
std::string cuda_version(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

std::unique_ptr<DeviceBuffer> filled_buffer(std::int64_t bytes, std::uint32_t seed, cudaStream_t stream) {
  auto buffer = std::make_unique<DeviceBuffer>(std::max(bytes, kAlignment));
  launch_fill(buffer->data(), buffer->bytes() / 2, seed, stream);
  return buffer;
}

}  // namespace

Probe::Probe(const std::vector<Point>& points) {
  require_gpu();
  check(cudaGetDeviceProperties(&gpu_, 0), "asking for the GPU's properties");
  constexpr int kFirstWithBf16 = 8;
  if (gpu_.major < kFirstWithBf16)
    throw Failure(std::string(gpu_.name) + ": has no bf16; run this on an A100 or a newer GPU");
  check(cudaSetDevice(0), "taking the GPU");
  check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "making a stream");
  OperandBytes most;
  for (const Point& point : points) {
    const OperandBytes bytes = operand_bytes(point);
    if (bytes.cold > 0)
      most.cold = std::max(most.cold, cold_copies(bytes.cold, gpu_.l2CacheSize) * aligned(bytes.cold));
    most.input = std::max(most.input, bytes.input);
    most.output = std::max(most.output, bytes.output);
  }
  cold_ = filled_buffer(most.cold, 1, stream_);
  input_ = filled_buffer(most.input, 2, stream_);
  output_ = filled_buffer(most.output, 3, stream_);
  products_ = std::make_unique<ProductLibrary>();
  timer_ = std::make_unique<DeviceTimer>(stream_);
}

Probe::~Probe() {
  cudaStreamSynchronize(stream_);
  timer_.reset();
  cudaStreamDestroy(stream_);
}

MeasuredProfile Probe::describe() const {
  int runtime = 0, driver = 0;
  check(cudaRuntimeGetVersion(&runtime), "asking for the runtime's version");
  check(cudaDriverGetVersion(&driver), "asking for the driver's version");
  const auto library = static_cast<int>(cublasLtGetVersion());
  MeasuredProfile profile;
  profile.machine =
      std::string(gpu_.name) + ", CUDA driver " + cuda_version(driver) + ", runtime " + cuda_version(runtime);
  profile.versions = {"CUDA runtime " + cuda_version(runtime), "CUDA driver " + cuda_version(driver),
                      "cuBLASLt " + std::to_string(library / 10000) + "." + std::to_string(library / 100 % 100) + "." +
                          std::to_string(library % 100)};
  profile.memory_bytes = static_cast<std::int64_t>(gpu_.totalGlobalMem);
  profile.device = device_of_gpu(gpu_.name);
  return profile;
}

Summary Probe::measure(const Point& point) {
  const auto empty = [&](std::int64_t) { launch_empty(stream_); };
  if (point.op == "launch") return timer_->host_time(empty);
  if (point.op == "empty_kernel") return timer_->device_time(empty);
  if (point.op == "copy") {
    return timer_->device_time(
        [&](std::int64_t) { launch_copy(output_->data(), input_->data(), point.tokens / 2, stream_); });
  }
  if (point.op == "residual") {
    return timer_->device_time([&](std::int64_t) {
      launch_add(output_->data(), input_->data(), cold_->data(), point.tokens * point.shape[0], stream_);
    });
  }
  return measure_product(point);
}

Summary Probe::measure_product(const Point& linear) {
  const Product product(*products_, linear);
  const std::int64_t bytes = operand_bytes(linear).cold;
  const std::int64_t copies = cold_copies(bytes, gpu_.l2CacheSize);
  return timer_->device_time([&](std::int64_t run) {
    product.launch(output_->data(), cold_->data() + run % copies * aligned(bytes), input_->data(), stream_);
  });
}

}  // namespace braid::gpu_probe
