#pragma once

#include <memory>
#include <string>

#include "kernels/gpu_probe/device/device_timer.h"
#include "kernels/gpu_probe/device/product.h"
#include "kernels/gpu_probe/profile_writer.h"

namespace braid::gpu_probe {

/// The first GPU that CUDA shows, with memory for the operands of the points that will be measured.
///
/// Which operands are in the L2 cache decides small times, so it is as in training. A layer's weights were last read a
/// whole pass ago: a product takes turns over copies of them (forward and backward W, for dW its X) that add up to
/// kColdCaches caches, so they come from memory; weights larger than that push themselves out. What the operator before
/// has just written, a product's other operand and all that copies and additions read, is one buffer, cached as far as
/// it fits. Clocks and power are left as they are.
class Probe {
 public:
  /// Throws Failure without a GPU, with one that has no bf16, or with too little memory free.
  explicit Probe(const std::vector<Point>& points);
  ~Probe();
  Probe(const Probe&) = delete;
  Probe& operator=(const Probe&) = delete;

  /// The machine's fields of the profile; no measurements yet.
  MeasuredProfile describe() const;

  /// Throws Failure when a kernel does not compute what it is timed for.
  void check_results();

  Summary measure(const Point& point);

  /// Samples that hold the host's time as well as the GPU's, because the host did not keep up.
  std::int64_t starved_samples() const { return timer_->starved_samples(); }

 private:
  Summary measure_product(const Point& linear);
  void check_product(const Point& linear);
  void check_addition();

  cudaDeviceProp gpu_{};
  cudaStream_t stream_ = nullptr;
  std::unique_ptr<DeviceBuffer> cold_, input_, output_;
  std::unique_ptr<ProductLibrary> products_;
  std::unique_ptr<DeviceTimer> timer_;
};

}  // namespace braid::gpu_probe
