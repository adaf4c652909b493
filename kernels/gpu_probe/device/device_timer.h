#pragma once

#include <cstdint>
#include <functional>

#include <cuda_runtime_api.h>

#include "kernels/gpu_probe/summary.h"

namespace braid::gpu_probe {

/// Queues one run of what is timed; called with 0, 1, 2, … so that runs can take turns over copies of an operand.
using Launch = std::function<void(std::int64_t)>;

/// Times work on one stream, run back to back as in training.
///
/// A sample is the time between two events around enough runs to fill kSampleSeconds, over their number. Small kernels
/// end sooner than a host can start the next, so a delay holds the stream until the last run of a sample is queued;
/// what remains is the device's own time from one kernel's start to the next one's.
class DeviceTimer {
 public:
  explicit DeviceTimer(cudaStream_t stream);
  ~DeviceTimer();
  DeviceTimer(const DeviceTimer&) = delete;
  DeviceTimer& operator=(const DeviceTimer&) = delete;

  /// The device's time for one run: runs and a sample to warm up, then kSamples samples.
  Summary device_time(const Launch& launch);

  /// The host's time to queue one run while the queue has room.
  Summary host_time(const Launch& launch);

  /// Samples so far in which the stream ran dry, so that they hold the host's time too.
  std::int64_t starved_samples() const { return starved_samples_; }

 private:
  struct Sample {
    double seconds = 0;  ///< one run's
    bool starved = false;
  };
  Sample sample(const Launch& launch, std::int64_t runs);
  Sample try_sample(const Launch& launch, std::int64_t runs, double delay_seconds);
  void wait() const;

  cudaStream_t stream_;
  cudaEvent_t start_ = nullptr, stop_ = nullptr;
  double cycles_per_second_ = 0;
  double queue_seconds_ = 0;  ///< the host's time to queue one run of what is timed now
  std::int64_t next_run_ = 0;
  std::int64_t starved_samples_ = 0;
};

}  // namespace braid::gpu_probe
