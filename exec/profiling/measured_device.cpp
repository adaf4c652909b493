#include "exec/profiling/measured_device.h"

#include <cmath>

#include "base/statistics.h"
#include "base/units.h"
#include "exec/example/random_weights.h"
#include "exec/optimizer.h"
#include "exec/profiling/measure.h"

namespace braid::exec {

using costmodel::Operator;
using costmodel::Pass;

namespace {

/// Times `work` as often as a size is worth.
template <typename Work>
void time(kernels::Device& device, MeasuredSamples& samples, const MeasuredSamples::Key& key, const Work& work) {
  for (std::int64_t i = 0; i <= kMostPasses; ++i) {
    const double seconds = seconds_of(device, work);
    if (i > 0) samples.add(key, seconds);
  }
}

/// Seconds of a product of three square matrices of activations, in the median; once to begin with.
double product_seconds(kernels::Device& device, std::int64_t side, int times) {
  const std::unique_ptr<kernels::FrozenLinear> linear = random_linear(side, side, false, 5, device.kernels());
  BufferPool pool(device);
  const Buffer x = pool.take(side * side), y = pool.take(side * side);
  device.kernels().fill(1, x.row());
  std::vector<double> samples;
  for (int i = 0; i <= times; ++i) {
    const double seconds = seconds_of(device, [&] { linear->forward(x.matrix(side, side), y.matrix(side, side)); });
    if (i > 0) samples.push_back(seconds);
  }
  return median(samples);
}

}  // namespace

void measure_optimizers(const costmodel::BackboneShape& backbone, std::int64_t most_parameters, kernels::Device& device,
                        MeasuredSamples& samples) {
  workload::Optimizer optimizer;
  BufferPool pool(device);
  std::vector<double> sums;
  // Adapters of one layer and of growing rank stand for any adapter: only the count of numbers matters.
  for (std::int64_t rank = 1;; rank = std::llround(kGridStep * static_cast<double>(rank))) {
    costmodel::AdapterShape adapter_shape{rank, 1.0, false, 0.0, {true, true, true, true, true, true, true}};
    Adapter adapter(backbone, adapter_shape, planner::LayerRange{0, 1}, 3);
    adapter.move_to(device);
    const auto numbers = static_cast<std::int64_t>(adapter.parameters().size());
    time(device, samples, {Operator::adamw, Pass::forward, {}, numbers, 0, 0}, [&] {
      squared_norms(adapter, pool, sums);
      take_step(optimizer, 0, 100, 1.0, adapter, device.kernels());
    });
    time(device, samples, {Operator::squared_norm, Pass::forward, {}, numbers, 0, 0},
         [&] { squared_norms(adapter, pool, sums); });
    if (numbers >= most_parameters) break;
  }
}

void measure_gpu(kernels::Device& device, MeasuredSamples& samples) {
  BufferPool pool(device);
  for (Bytes bytes = 128 << 10; bytes <= Bytes{256} << 20; bytes *= 2) {
    const auto numbers = bytes / 2 / static_cast<Bytes>(sizeof(float));
    const Buffer from = pool.take_f32(numbers), to = pool.take_f32(numbers);
    device.kernels().fill(1, from.row());
    time(device, samples, {Operator::copy, Pass::forward, {}, bytes, 0, 0},
         [&] { device.kernels().copy(from.row(), to.row()); });
  }
  constexpr int kCalls = 100;
  const Buffer little = pool.take_f32(1);
  for (std::int64_t i = 0; i <= kMostPasses; ++i) {
    device.wait();
    const SteadyClock::time_point start = SteadyClock::now();
    for (int call = 0; call < kCalls; ++call) device.kernels().fill(0, little.row());
    const double seconds = seconds_since(start) / kCalls;
    if (i > 0) samples.add({Operator::launch, Pass::forward, {}, 1, 0, 0}, seconds);
  }
}

double measure_peak_flops(kernels::Device& device) {
  // A product of a millisecond and more keeps all of a device busy.
  constexpr std::int64_t kLeast = 1024, kMost = 8192;
  std::int64_t side = kLeast;
  while (side < kMost && product_seconds(device, side, 1) < 1e-3) side *= 2;
  const auto length = static_cast<double>(side);
  return 2.0 * length * length * length / product_seconds(device, side, 10);
}

}  // namespace braid::exec
