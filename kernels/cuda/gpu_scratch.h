#pragma once

#include "base/rooms.h"
#include "kernels/cuda/gpu_ranges.h"

namespace braid::kernels::cuda {

/// Memory that operators of the compute stream take for a moment. As what is launched later runs later, what is given
/// back serves the next at once, and the same calls get the same addresses. Pages stay until `trim`.
class ScratchMemory {
 public:
  /// Of addresses there is more than memory, but the system may grant fewer.
  explicit ScratchMemory(AddressRanges& ranges) : ranges_(ranges) {
    constexpr Bytes kMost = Bytes{1} << 40, kLeast = Bytes{1} << 34;
    for (reserved_ = kMost; reserved_ >= kLeast && !base_; reserved_ /= 2)
      base_ = static_cast<char*>(ranges_.reserve(reserved_));
    if (!base_) throw Failure("the system grants no addresses for a GPU's memory; look at ulimit -v");
    reserved_ *= 2;
    rooms_ = Rooms(reserved_);
  }
  ScratchMemory(const ScratchMemory&) = delete;
  ScratchMemory& operator=(const ScratchMemory&) = delete;
  ~ScratchMemory() { ranges_.release(base_, reserved_); }

  /// Throws Failure where the GPU has no more.
  void* take(std::int64_t bytes) {
    const std::optional<ByteRange> taken = rooms_.take(rounded_up(bytes));
    if (!taken) throw Failure("operators want more scratch memory than a GPU has");
    char* const memory = base_ + taken->first;
    try {
      if (taken->last > committed_) ranges_.commit(base_ + committed_, taken->last - committed_);
    } catch (...) {
      rooms_.give_back(*taken);
      throw;
    }
    committed_ = std::max(committed_, taken->last);
    return memory;
  }
  void give_back(void* memory, std::int64_t bytes) {
    const Bytes first = static_cast<char*>(memory) - base_;
    rooms_.give_back({first, first + rounded_up(bytes)});
  }
  /// Gives all pages back that lie beyond what is taken; all that was launched must have ended.
  void trim() {
    const Bytes kept = (rooms_.end() + ranges_.chunk() - 1) / ranges_.chunk() * ranges_.chunk();
    if (kept >= committed_) return;
    ranges_.discard(base_ + kept, (committed_ - kept + ranges_.chunk() - 1) / ranges_.chunk() * ranges_.chunk());
    committed_ = kept;
  }

 private:
  static Bytes rounded_up(std::int64_t bytes) {
    constexpr Bytes kAlignment = 256;
    return (bytes + kAlignment - 1) / kAlignment * kAlignment;
  }

  AddressRanges& ranges_;
  char* base_ = nullptr;
  Bytes reserved_ = 0, committed_ = 0;
  Rooms rooms_;
};

}  // namespace braid::kernels::cuda
