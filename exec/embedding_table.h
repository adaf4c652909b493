#pragma once

#include "exec/data_type.h"
#include "exec/device_array.h"

namespace braid::exec {

/// Rows that tokens or positions look up, [rows, width]: f32 on the host, and on a device in the type of its
/// activations.
class EmbeddingTable {
 public:
  EmbeddingTable() = default;
  EmbeddingTable(std::vector<float> numbers)  // NOLINT(google-explicit-constructor): as a vector it is used until moved
      : wide_(std::move(numbers)) {}

  bool empty() const { return size() == 0; }
  std::int64_t size() const { return wide_.size() + narrow_.size(); }
  /// As DeviceArray has it; until it is moved.
  std::vector<float> on_host() const { return wide_.on_host(); }
  void move_to(kernels::Device& device) {
    if (device.activations() == costmodel::DataType::bf16 && narrow_.empty()) {
      const std::vector<float> wide = wide_.on_host();
      std::vector<std::uint16_t> halves(wide.size());
      narrow(DataType::bf16, wide, std::as_writable_bytes(std::span(halves)));
      narrow_ = std::move(halves);
      wide_ = {};
    }
    wide_.move_to(device);
    narrow_.move_to(device);
  }
  kernels::ConstMatrix rows(std::int64_t count, std::int64_t width) const {
    if (narrow_.empty()) return {wide_.data(), count, width};
    return {reinterpret_cast<const float*>(narrow_.data()), count, width, width, costmodel::DataType::bf16};
  }

 private:
  DeviceArray<float> wide_;
  DeviceArray<std::uint16_t> narrow_;
};

}  // namespace braid::exec
