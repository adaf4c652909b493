#pragma once

#include <memory>
#include <utility>
#include <vector>

#include <cuda_runtime.h>

#include "kernels/cuda/errors.h"
#include "kernels/device.h"

namespace braid::kernels::cuda {

/// Timed events of CUDA that nobody uses. None is destroyed before all are, as a graph may have recorded it once.
class SpareEvents {
 public:
  SpareEvents() = default;
  SpareEvents(const SpareEvents&) = delete;
  SpareEvents& operator=(const SpareEvents&) = delete;
  ~SpareEvents() {
    for (const cudaEvent_t event : spare_) cudaEventDestroy(event);
  }
  cudaEvent_t take() {
    cudaEvent_t event = nullptr;
    if (spare_.empty()) {
      check(cudaEventCreate(&event));
    } else {
      event = spare_.back();
      spare_.pop_back();
    }
    return event;
  }
  void give_back(cudaEvent_t event) { spare_.push_back(event); }

 private:
  std::vector<cudaEvent_t> spare_;
};

/// A timed event of CUDA.
class TimedEvent {
 public:
  /// One that is captured is recorded whenever the graph runs.
  TimedEvent(std::shared_ptr<SpareEvents> spare, cudaStream_t stream, bool captured = false)
      : spare_(std::move(spare)), event_(spare_->take()) {
    const cudaError_t status =
        cudaEventRecordWithFlags(event_, stream, captured ? cudaEventRecordExternal : cudaEventRecordDefault);
    if (status != cudaSuccess) spare_->give_back(event_);
    check(status);
  }
  TimedEvent(const TimedEvent&) = delete;
  TimedEvent& operator=(const TimedEvent&) = delete;
  ~TimedEvent() { spare_->give_back(event_); }
  bool has_ended() const {
    const cudaError_t status = cudaEventQuery(event_);
    if (status == cudaErrorNotReady) return false;
    check(status);
    return true;
  }
  double seconds_after(const TimedEvent& other) const {
    float milliseconds = 0;
    check(cudaEventElapsedTime(&milliseconds, other.event_, event_));
    return double{milliseconds} * 1e-3;
  }

  void hold_up(cudaStream_t stream) const { check(cudaStreamWaitEvent(stream, event_)); }

 private:
  std::shared_ptr<SpareEvents> spare_;
  cudaEvent_t event_;
};

/// What a device's events are told by.
class EventClock {
 public:
  virtual ~EventClock() = default;
  /// The first so many downloads have ended.
  virtual void take_downloads(std::int64_t ended) = 0;
  /// Of an event that has ended.
  virtual SteadyClock::time_point time_of(const std::shared_ptr<TimedEvent>& event) = 0;
  virtual const std::shared_ptr<SpareEvents>& spare_events() = 0;
  /// Whether the subgraph of that number, in which an event was captured, is on its way.
  virtual bool has_been_launched(std::int64_t /*subgraph*/) { return true; }
};

/// A point of the compute stream or of a group's.
class GpuEvent final : public Event {
 public:
  /// `downloads` were called before; captured in that subgraph, or 0.
  GpuEvent(EventClock& clock, cudaStream_t stream, std::int64_t downloads = 0, std::int64_t subgraph = 0)
      : clock_(clock),
        event_(std::make_shared<TimedEvent>(clock.spare_events(), stream, subgraph > 0)),
        downloads_(downloads),
        subgraph_(subgraph) {}
  std::optional<SteadyClock::time_point> ended() override {
    if (at_ || (subgraph_ > 0 && !clock_.has_been_launched(subgraph_)) || !event_->has_ended()) return at_;
    clock_.take_downloads(downloads_);
    at_ = clock_.time_of(event_);
    event_.reset();
    return at_;
  }
  /// What is put into the stream from here on runs after it.
  void hold_up(cudaStream_t stream) const {
    if (event_) event_->hold_up(stream);
  }

 private:
  EventClock& clock_;
  std::shared_ptr<TimedEvent> event_;
  std::int64_t downloads_, subgraph_;
  std::optional<SteadyClock::time_point> at_;
};

}  // namespace braid::kernels::cuda
