#include "kernels/gpu_probe/device/device_timer.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <vector>

#include "kernels/gpu_probe/device/cuda_check.h"
#include "kernels/gpu_probe/device/kernels.h"

namespace braid::gpu_probe {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kSamples = 9;
/// Events are good to about half a microsecond.
constexpr double kSampleSeconds = 2.5e-3;
/// Of one sample. A stream holds about a thousand kernels before the host must wait, and a product can be two.
constexpr std::int64_t kMostRuns = 400;
constexpr int kWarmUpRuns = 3;
constexpr int kHostRuns = 200;
/// Before anything was queued: on the slow side.
constexpr double kFirstQueueSeconds = 20e-6;
constexpr int kTries = 4;
/// Where the driver tells none; a delay that is too long or too short does no harm.
constexpr int kUsualKilohertz = 1'500'000;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

}  // namespace

DeviceTimer::DeviceTimer(cudaStream_t stream) : stream_(stream) {
  int device = 0, kilohertz = 0;
  check(cudaGetDevice(&device), "asking which GPU this is");
  check(cudaDeviceGetAttribute(&kilohertz, cudaDevAttrClockRate, device), "asking for the GPU's clock");
  cycles_per_second_ = 1e3 * (kilohertz > 0 ? kilohertz : kUsualKilohertz);
  check(cudaEventCreate(&start_), "making an event");
  check(cudaEventCreate(&stop_), "making an event");
}

DeviceTimer::~DeviceTimer() {
  cudaEventDestroy(start_);
  cudaEventDestroy(stop_);
}

Summary DeviceTimer::device_time(const Launch& launch) {
  next_run_ = 0;
  queue_seconds_ = kFirstQueueSeconds;
  // A kernel's first run loads its code.
  for (int run = 0; run < kWarmUpRuns; ++run) launch(next_run_++);
  wait();
  const double roughly = std::max(sample(launch, kWarmUpRuns).seconds, 1e-7);
  const std::int64_t runs = std::clamp<std::int64_t>(std::llround(std::ceil(kSampleSeconds / roughly)), 1, kMostRuns);
  sample(launch, runs);
  std::vector<double> samples;
  for (int i = 0; i < kSamples; ++i) {
    const Sample one = sample(launch, runs);
    samples.push_back(one.seconds);
    starved_samples_ += one.starved ? 1 : 0;
  }
  return summarize(samples);
}

Summary DeviceTimer::host_time(const Launch& launch) {
  next_run_ = 0;
  std::vector<double> samples;
  for (int i = 0; i <= kSamples; ++i) {
    wait();
    const Clock::time_point start = Clock::now();
    for (int run = 0; run < kHostRuns; ++run) launch(next_run_++);
    if (i > 0) samples.push_back(seconds_since(start) / kHostRuns);  // the first warms up
  }
  wait();
  return summarize(samples);
}

DeviceTimer::Sample DeviceTimer::sample(const Launch& launch, std::int64_t runs) {
  Sample best;
  double delay = 0;
  for (int attempt = 0; attempt < kTries; ++attempt) {
    // Half as much again as it should take, and time for the delay itself to start.
    delay = std::max(2 * delay, 20e-6 + 1.5 * queue_seconds_ * static_cast<double>(runs));
    best = try_sample(launch, runs, delay);
    if (!best.starved) break;
  }
  return best;
}

DeviceTimer::Sample DeviceTimer::try_sample(const Launch& launch, std::int64_t runs, double delay_seconds) {
  launch_delay(std::llround(delay_seconds * cycles_per_second_), stream_);
  check(cudaEventRecord(start_, stream_), "recording an event");
  const Clock::time_point start = Clock::now();
  for (std::int64_t run = 0; run < runs; ++run) launch(next_run_++);
  queue_seconds_ = seconds_since(start) / static_cast<double>(runs);
  check(cudaEventRecord(stop_, stream_), "recording an event");
  const cudaError_t delayed = cudaEventQuery(start_);
  if (delayed != cudaErrorNotReady) check(delayed, "running kernels");
  cudaGetLastError();  // the answer "not ready" is kept there like an error
  check(cudaEventSynchronize(stop_), "running kernels");
  float milliseconds = 0;
  check(cudaEventElapsedTime(&milliseconds, start_, stop_), "reading events");
  const double seconds = 1e-3 * static_cast<double>(milliseconds) / static_cast<double>(runs);
  // A delay that ended early does no harm where runs take far longer than it takes to queue them.
  constexpr double kAmpleFactor = 4;
  return {seconds, delayed == cudaSuccess && seconds < kAmpleFactor * queue_seconds_};
}

void DeviceTimer::wait() const {
  check(cudaStreamSynchronize(stream_), "running kernels");
}

}  // namespace braid::gpu_probe
