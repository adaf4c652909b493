#pragma once

#include <map>
#include <memory>

#include "exec/profiling/measured_samples.h"
#include "exec/ranks/communicator.h"

namespace braid::exec {

/// What messages, sums and gathers between the ranks of a run take, by size. All ranks make and call it alike.
class Messages {
 public:
  /// Both outlive it.
  Messages(Communicator& communicator, kernels::Device& device);

  /// Each size once more.
  void measure(MeasuredSamples& samples);

 private:
  void measure_gather(int ranks, std::int64_t count, MeasuredSamples& samples);

  Communicator& communicator_;
  kernels::Device& device_;
  std::map<int, std::unique_ptr<CommunicatorGroup>> groups_;  // by size
  std::unique_ptr<SharedMemory> memory_;  // where ranks share any
};

/// A few messages and sums of all ranks, so that libraries take what they keep of memory.
void touch_messages(Communicator& communicator, kernels::Device& device);

}  // namespace braid::exec
