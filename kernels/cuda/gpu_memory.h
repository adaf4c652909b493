#pragma once

#include "base/units.h"

namespace braid::kernels::cuda {

/// What a process holds of its GPU's memory: what the GPU has in use, less what others had in use before this process
/// had a context there. Made before the context.
class MemoryWatch {
 public:
  explicit MemoryWatch(int ordinal);
  Bytes memory() const;
  /// Looks, which takes the driver some tens of microseconds.
  Bytes held();
  /// The most that was seen since it was forgotten; whoever takes memory of the GPU has it look.
  Bytes most() const { return most_; }
  void forget_most() { most_ = held(); }

 private:
  Bytes others_ = 0;
  Bytes most_ = 0;
};

}  // namespace braid::kernels::cuda
