#include "costmodel/gpu/roofline.h"

#include <algorithm>

#include "base/error.h"
#include "costmodel/gpu/gpu_kernels.h"
#include "costmodel/gpu/stream_model.h"

namespace braid::costmodel {
namespace {

// FlashAttention-2 (Dao 2023), A100, causal, head size 128, long sequences: about 190 of 312 TFLOP/s forward and 170
// backward.
constexpr double kAttentionForward = 0.61;
constexpr double kAttentionBackward = 0.54;

using Streams = std::array<StreamCoefficients, kStreamKindCount>;

Streams streams_of(Generation generation) {
  Streams streams;
  for (int kind = 0; kind < kStreamKindCount; ++kind)
    streams[static_cast<std::size_t>(kind)] = stream_coefficients(generation, static_cast<StreamKind>(kind));
  return streams;
}

Streams scaled_to(const StreamCoefficients& copies, Streams streams) {
  const StreamCoefficients add = streams[static_cast<std::size_t>(StreamKind::add)];
  for (StreamCoefficients& one : streams) {
    one.launch_seconds = std::max(0.0, one.launch_seconds + copies.launch_seconds - add.launch_seconds);
    one.cached *= copies.cached / add.cached;
    one.beyond_cache *= copies.beyond_cache / add.beyond_cache;
  }
  return streams;
}

Device clocked(Device device, double clock) {
  device.bf16_flops *= clock;
  device.f32_flops *= clock;
  return device;
}

GemmCoefficients clocked_products(const Profile& profile) {
  GemmCoefficients products =
      profile.products ? *profile.products : gemm_coefficients(device_of(profile.device).generation);
  products.block_seconds /= profile.clock;
  products.cache_bandwidth *= profile.clock;
  return products;
}

}  // namespace

Roofline::Roofline(const Device& device, DataType type)
    : device_(device),
      type_(type),
      products_(device, activation_type(type), gemm_coefficients(device.generation)),
      streams_(streams_of(device.generation)) {}

Roofline::Roofline(const Profile& profile)
    : device_(clocked(device_of(profile.device), profile.clock)),
      type_(profile.dtype),
      attention_(profile.attention),
      products_(device_, activation_type(type_), clocked_products(profile)),
      streams_(profile.copies ? scaled_to(*profile.copies, streams_of(device_.generation))
                              : streams_of(device_.generation)) {}

double Roofline::seconds(const GpuKernel& kernel, bool forward) const {
  switch (kernel.kind) {
    case GpuKernel::Kind::product:
      return products_.seconds(kernel.product);
    case GpuKernel::Kind::attention:
    case GpuKernel::Kind::batched:
      return seconds(attention_work(kernel, forward));
    case GpuKernel::Kind::stream:
      break;
  }
  return stream_seconds(device_, streams_[static_cast<std::size_t>(kernel.stream)], kernel.bytes);
}

/// As products of many tiles: their rate and bandwidth, and no wave that is not full.
double Roofline::batched_seconds(const GpuKernel& kernel) const {
  const GemmCoefficients& products = products_.coefficients();
  return std::max(kernel.flops / (device_.peak_flops(type_) * products.rate_efficiency),
                  kernel.bytes / (device_.memory_bandwidth * products.bandwidth_efficiency));
}

AttentionWork Roofline::attention_work(const GpuKernel& kernel, bool forward) const {
  switch (kernel.kind) {
    case GpuKernel::Kind::batched:
      return {batched_seconds(kernel), 0, 1};
    case GpuKernel::Kind::stream: {
      const double slowdown = streams_[static_cast<std::size_t>(kernel.stream)].beyond_cache;
      return {kernel.bytes * std::max(1.0, slowdown) / device_.memory_bandwidth, 0, 1};
    }
    case GpuKernel::Kind::attention:
    case GpuKernel::Kind::product:
      break;
  }
  const double rate = device_.peak_flops(type_) * (forward ? kAttentionForward : kAttentionBackward);
  return {kernel.flops / rate, kernel.bytes / device_.memory_bandwidth, 1};
}

double Roofline::seconds(const AttentionWork& work) const {
  const StreamCoefficients& moved = streams_[static_cast<std::size_t>(StreamKind::add)];
  const double one =
      std::max(work.product_seconds, stream_seconds(device_, moved, work.memory_seconds * device_.memory_bandwidth));
  return one + std::max(0.0, work.launches - 1) * moved.launch_seconds;
}

double Roofline::least_seconds(const GpuKernel& kernel) const {
  const double flops = kernel.kind == GpuKernel::Kind::product ? kernel.product.flops() : kernel.flops;
  return std::max(flops / device_.peak_flops(type_), kernel.bytes / device_.memory_bandwidth);
}

Roofline::Cost Roofline::cost(const OperatorCall& call) const {
  if (is_collective(call.op))
    throw error("'{}' needs a link between GPUs; give a cluster, or a profile that measured it", name(call.op));
  const bool attends = call.op == Operator::attention, forward = call.pass == Pass::forward;
  Cost cost;
  for (const GpuKernel& kernel : gpu_kernels(call, type_, attention_)) {
    if (attends) {
      cost.attention += attention_work(kernel, forward);
    } else {
      cost.seconds += kernel.count * seconds(kernel, forward);
    }
    cost.launches += kernel.count;
    cost.least += kernel.count * least_seconds(kernel);
  }
  if (attends) {
    cost.attention.launches = cost.launches;
    cost.seconds = seconds(cost.attention);
  }
  return cost;
}

double Roofline::traffic(const OperatorCall& call) const {
  double bytes = 0;
  for (const GpuKernel& kernel : gpu_kernels(call, type_, attention_)) bytes += kernel.count * kernel.bytes;
  return bytes;
}

}  // namespace braid::costmodel
