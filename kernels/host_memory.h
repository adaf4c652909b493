#pragma once

#include "kernels/device.h"

namespace braid::kernels {

/// A device whose memory is the host's, and whose operators have ended when their calls return.
class HostMemoryDevice : public Device {
 public:
  std::string machine() const override;
  Bytes memory() const override;
  Bytes held() const override;
  Bytes most_held() const override;
  void forget_most_held() override;
  void trim() override;

  void* reserve(Bytes bytes) override;
  void discard(void* first, Bytes bytes) override;
  void release(void* base, Bytes bytes) override;

  bool host_memory() const override { return true; }
  void* allocate(Bytes bytes) override;
  void free(void* memory) override;
  void upload(std::span<const std::byte> from, void* to) override;
  void download(const void* from, std::span<std::byte> to) override;
  void copy(const void* from, void* to, Bytes bytes) override;
  std::unique_ptr<Event> record() override;
  void wait() override {}
};

}  // namespace braid::kernels
