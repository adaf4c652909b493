#pragma once

#include "kernels/device.h"

namespace braid::kernels {

/// A device whose memory is the host's.
class HostMemoryDevice : public Device {
 public:
  void* reserve(Bytes bytes) override;
  void discard(void* first, Bytes bytes) override;
  void release(void* base, Bytes bytes) override;
};

}  // namespace braid::kernels
