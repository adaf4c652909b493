#pragma once

#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include "kernels/device.h"

namespace braid::exec {

/// Numbers that begin on the host and, once they are moved, lie on a device as long as this does. On a device whose
/// memory is the host's they stay where they are.
template <typename Number>
class DeviceArray {
 public:
  DeviceArray() = default;
  DeviceArray(std::vector<Number> numbers)  // NOLINT(google-explicit-constructor): as a vector it is used until moved
      : host_(std::move(numbers)), size_(std::ssize(host_)) {}

  void move_to(kernels::Device& device) {
    device_ = &device;
    if (moved_) return;
    if (device.host_memory() || size_ == 0) return;
    moved_ = {device.allocate(bytes()), [&device](void* memory) { device.free(memory); }};
    device.upload(std::as_bytes(std::span(host_)), moved_.get());
    std::vector<Number>().swap(host_);
  }

  bool empty() const { return size_ == 0; }
  std::int64_t size() const { return size_; }
  const Number* data() const { return moved_ ? static_cast<const Number*>(moved_.get()) : host_.data(); }
  Number* data() { return moved_ ? static_cast<Number*>(moved_.get()) : host_.data(); }
  kernels::BasicVector<const Number> view() const { return {data(), size_}; }
  kernels::BasicVector<Number> view() { return {data(), size_}; }

  /// What they are when all that was called on the device has ended.
  std::vector<Number> on_host() const {
    if (!moved_) {
      if (device_) device_->wait();
      return host_;
    }
    std::vector<Number> numbers(static_cast<std::size_t>(size_));
    device_->download(moved_.get(), std::as_writable_bytes(std::span(numbers)));
    device_->wait();
    return numbers;
  }
  /// Takes others of as many, which may go away.
  void assign(std::span<const Number> numbers) {
    BRAID_CHECK(std::ssize(numbers) == size_, "{} numbers in place of {}", numbers.size(), size_);
    if (moved_) {
      device_->upload(std::as_bytes(numbers), moved_.get());
    } else {
      std::memcpy(host_.data(), numbers.data(), numbers.size_bytes());
    }
  }

 private:
  Bytes bytes() const { return size_ * static_cast<Bytes>(sizeof(Number)); }

  std::vector<Number> host_;
  std::int64_t size_ = 0;
  kernels::Device* device_ = nullptr;
  std::shared_ptr<void> moved_;
};

}  // namespace braid::exec
