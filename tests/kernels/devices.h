#pragma once

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>

#include <gtest/gtest.h>

#include "cuda_on_cpu_device.h"
#include "kernels/cuda/bf16.h"
#include "kernels/device.h"
#include "testing.h"

/// Every operator of every device against the reference, on the same numbers, of any shape.
namespace braid::kernels::testing {

using costmodel::DataType;

struct Tested {
  const char* name;
  std::unique_ptr<Device> (*make)(std::uint64_t seed);
  /// Whether each call is a subgraph, which runs when something is asked of the device again: by then what the call was
  /// shown of the host is gone.
  bool in_graphs = false;
};

/// Launches subgraphs as graphs.
inline std::unique_ptr<Device> with_graphs(std::unique_ptr<Device> device) {
  device->choose_kernels(costmodel::all_of(costmodel::Operator::launch));
  return device;
}

inline const Tested kDevices[] = {
    {"cpu", [](std::uint64_t) { return make_cpu_device(); }},
    {"cuda_on_cpu", [](std::uint64_t seed) { return make_cuda_on_cpu_device(Arithmetic::f32, seed); }},
    {"cuda", [](std::uint64_t) { return make_cuda_device(0); }},
    {"cuda_f32", [](std::uint64_t) { return make_cuda_device(0, Arithmetic::f32); }},
    {"cuda_on_cpu_bf16", [](std::uint64_t seed) { return make_cuda_on_cpu_device(Arithmetic::bf16, seed); }},
    {"cuda_graphs", [](std::uint64_t) { return with_graphs(make_cuda_device(0)); }, true},
    {"cuda_on_cpu_graphs",
     [](std::uint64_t seed) { return with_graphs(make_cuda_on_cpu_device(Arithmetic::bf16, seed)); }, true},
};

inline float rounded(float number, DataType type) {
  return type == DataType::bf16 ? static_cast<float>(cuda::Bf16(number)) : number;
}

/// Whether rows of a case lie on 16 bytes and sizes are mostly multiples of eight, so that devices may take many
/// numbers at once; else neither is so.
inline bool on_16_bytes = false;

/// Numbers of a case: on the host for the reference, and on the device, as it holds them, for the device's operators.
class Numbers {
 public:
  Numbers(Device& device, RandomStream& random, std::int64_t rows, std::int64_t columns, DataType type,
          float deviation = 1)
      : Numbers(device, random, rows, columns, type, type, deviation) {}
  /// Of type `type`, but as `rounds` rounds them.
  Numbers(Device& device, RandomStream& random, std::int64_t rows, std::int64_t columns, DataType type, DataType rounds,
          float deviation)
      : device_(&device),
        type_(type),
        host_(rows, columns),
        stride_(on_16_bytes ? (columns + 15) / 8 * 8 : columns + 5) {
    fill_normal(host_, random, deviation);
    for (std::int64_t row = 0; row < rows; ++row)
      for (std::int64_t i = 0; i < columns; ++i) host_.at(row, i) = rounded(host_.at(row, i), rounds);
    const Bytes bytes = std::max<Bytes>(rows * stride_, 1) * costmodel::bytes_of(type);
    memory_ = {device.allocate(bytes), [&device](void* memory) { device.free(memory); }};
    std::vector<std::byte> stored(static_cast<std::size_t>(bytes), std::byte{0xFF});
    for (std::int64_t row = 0; row < rows; ++row)
      for (std::int64_t i = 0; i < columns; ++i) store(stored, row * stride_ + i, host_.at(row, i));
    device.upload(stored, memory_.get());
  }

  Matrix host() { return host_; }
  Matrix there() const { return {static_cast<float*>(memory_.get()), host_.rows(), host_.columns(), stride_, type_}; }
  /// Of one row of f32.
  Vector host_vector() { return {host().row(0), host_.columns()}; }
  Vector vector() const { return {static_cast<float*>(memory_.get()), host_.columns()}; }

  /// What the device has now, beside what the host has.
  double difference() {
    std::vector<std::byte> stored(
        static_cast<std::size_t>(std::max<Bytes>(host_.rows() * stride_, 1) * costmodel::bytes_of(type_)));
    device_->download(memory_.get(), stored);
    device_->wait();
    double most = 1, largest = 0;
    for (std::int64_t row = 0; row < host_.rows(); ++row) {
      for (std::int64_t i = 0; i < host_.columns(); ++i) {
        most = std::max(most, std::abs(double{host_.at(row, i)}));
        const double difference = std::abs(double{load(stored, row * stride_ + i)} - double{host_.at(row, i)});
        largest = std::max(largest, std::isnan(difference) ? 1e30 : difference);
      }
    }
    return largest / most;
  }

 private:
  void store(std::vector<std::byte>& bytes, std::int64_t place, float number) const {
    if (type_ == DataType::f32) {
      std::memcpy(bytes.data() + 4 * place, &number, 4);
    } else {
      const cuda::Bf16 half(number);
      std::memcpy(bytes.data() + 2 * place, &half, 2);
    }
  }
  float load(const std::vector<std::byte>& bytes, std::int64_t place) const {
    float number = 0;
    cuda::Bf16 half;
    if (type_ == DataType::f32) {
      std::memcpy(&number, bytes.data() + 4 * place, 4);
      return number;
    }
    std::memcpy(&half, bytes.data() + 2 * place, 2);
    return static_cast<float>(half);
  }

  Device* device_;
  DataType type_;
  OwnedMatrix host_;
  std::int64_t stride_;
  std::shared_ptr<void> memory_;
};

class Devices : public ::testing::TestWithParam<std::tuple<Tested, int>> {
 protected:
  Devices()
      : random_(static_cast<std::uint64_t>(std::get<1>(GetParam()))),
        device_(make(std::get<0>(GetParam()), random_.next_below(1 << 20))) {}
  void SetUp() override {
    on_16_bytes = std::get<1>(GetParam()) % 2 == 0;
    if (!device_) GTEST_SKIP() << "no GPU here";
  }

  /// Null where the machine has none, unless BRAID_GPU says that it has.
  static std::unique_ptr<Device> make(const Tested& tested, std::uint64_t seed) {
    try {
      return tested.make(seed);
    } catch (const std::runtime_error&) {
      if (!std::string_view(tested.name).starts_with("cuda") || std::getenv("BRAID_GPU")) throw;
      return nullptr;
    }
  }

  std::int64_t between(std::int64_t first, std::int64_t last) {
    const std::int64_t any =
        first + static_cast<std::int64_t>(random_.next_below(static_cast<std::uint64_t>(last - first + 1)));
    if (!on_16_bytes || last - first < 16 || random_.next_below(4) == 0) return any;
    return std::clamp(any / 8 * 8, (first + 7) / 8 * 8, last);
  }
  DataType type() const { return device_->activations(); }
  Numbers activations(std::int64_t rows, std::int64_t columns, float deviation = 1) {
    return {*device_, random_, rows, columns, type(), deviation};
  }
  Numbers f32(std::int64_t rows, std::int64_t columns, float deviation = 1) {
    return {*device_, random_, rows, columns, DataType::f32, deviation};
  }
  /// Of an adapter, whose products with activations in bf16 are made of numbers rounded to that.
  Numbers parameters(std::int64_t rows, std::int64_t columns, float deviation = 1) {
    return {*device_, random_, rows, columns, DataType::f32, type(), deviation};
  }
  std::vector<std::int32_t> integers(std::int64_t count, std::int64_t below) {
    std::vector<std::int32_t> numbers(static_cast<std::size_t>(count));
    for (std::int32_t& number : numbers) number = static_cast<std::int32_t>(between(0, below - 1));
    return numbers;
  }
  /// Of one rounding of a result to the device's type, and some of f32 before.
  void agree(Numbers& numbers, const char* what, double roundings = 1) {
    EXPECT_LT(numbers.difference(), roundings * (type() == DataType::bf16 ? 4.1e-3 : 3e-6)) << what;
  }

  const Kernels& reference() { return reference_->kernels(); }
  const Kernels& own() {
    const SubgraphCall call{costmodel::Pass::forward, 1, 0};
    // The first of its kind goes without a graph.
    for (int time = 0; std::get<0>(GetParam()).in_graphs && time < 2; ++time) device_->begin_subgraph(call);
    return device_->kernels();
  }

  RandomStream random_;
  std::unique_ptr<Device> device_;
  std::unique_ptr<Device> reference_ = make_reference_device();
};

}  // namespace braid::kernels::testing
