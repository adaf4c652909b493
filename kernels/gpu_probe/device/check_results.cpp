#include <algorithm>
#include <cmath>

#include "kernels/gpu_probe/device/kernels.h"
#include "kernels/gpu_probe/device/probe.h"
#include "kernels/gpu_probe/reference_product.h"

namespace braid::gpu_probe {
namespace {

/// What `bytes` of bf16 numbers in GPU memory are, once `stream` has ended.
std::vector<double> read_back(const void* from, std::int64_t bytes, cudaStream_t stream) {
  std::vector<std::uint16_t> bits(static_cast<std::size_t>(bytes / 2));
  check(cudaStreamSynchronize(stream), "running kernels");
  check(cudaMemcpy(bits.data(), from, bits.size() * 2, cudaMemcpyDeviceToHost), "reading results back");
  std::vector<double> numbers;
  std::transform(bits.begin(), bits.end(), std::back_inserter(numbers), from_bf16);
  return numbers;
}

/// Throws Failure when some number is off by more than rounding to bf16 twice over (a product's sums stay below 2⁵).
void require_equal(const std::vector<double>& found, const std::vector<double>& right, const std::string& what) {
  constexpr double kTolerance = 0x1p-7;
  for (std::size_t i = 0; i < right.size(); ++i) {
    // NaN is off too.
    if (!(std::abs(found.at(i) - right[i]) <= kTolerance * std::max(1.0, std::abs(right[i]))))
      throw Failure(what +
                    " gives wrong numbers on this GPU, so nothing was measured; report this with the GPU's name");
  }
}

}  // namespace

void Probe::check_results() {
  // Three sizes that differ, so that a matrix taken the wrong way round shows.
  for (const std::string pass : {"forward", "backward", "parameters"})
    check_product({"check", "linear", pass, {64, 48}, 40});
  check_addition();
}

void Probe::check_product(const Point& linear) {
  const OperandBytes bytes = operand_bytes(linear);
  Product(*products_, linear).launch(output_->data(), cold_->data(), input_->data(), stream_);
  require_equal(read_back(output_->data(), bytes.output, stream_),
                reference_product(product_layout(linear), read_back(cold_->data(), bytes.cold, stream_),
                                  read_back(input_->data(), bytes.input, stream_)),
                "a product");
}

void Probe::check_addition() {
  constexpr std::int64_t kBytes = 16384;  // no whole number of a copy's blocks
  launch_copy(output_->data(), input_->data(), kBytes - 16, stream_);
  const std::vector<double> input = read_back(input_->data(), kBytes - 16, stream_);
  require_equal(read_back(output_->data(), kBytes - 16, stream_), input, "a copy");
  launch_add(output_->data(), input_->data(), cold_->data(), kBytes / 2, stream_);
  std::vector<double> sum = read_back(input_->data(), kBytes, stream_);
  const std::vector<double> other = read_back(cold_->data(), kBytes, stream_);
  std::transform(sum.begin(), sum.end(), other.begin(), sum.begin(), std::plus<>());
  require_equal(read_back(output_->data(), kBytes, stream_), sum, "an addition");
}

}  // namespace braid::gpu_probe
