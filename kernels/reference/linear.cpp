#include "kernels/linear.h"

#include <vector>

#include "kernels/matmul.h"

namespace braid::kernels::reference {
namespace {

class PlainLinear final : public FrozenLinear {
 public:
  PlainLinear(ConstMatrix weight, std::span<const float> bias)
      : in_(weight.columns), out_(weight.rows), bias_(bias.begin(), bias.end()) {
    weight_.reserve(static_cast<std::size_t>(in_ * out_));
    for (std::int64_t r = 0; r < out_; ++r) weight_.insert(weight_.end(), weight.row(r), weight.row(r) + in_);
  }

  std::int64_t in() const override { return in_; }
  std::int64_t out() const override { return out_; }
  ConstVector bias() const override { return bias_; }
  std::int64_t bytes() const override {
    return (std::ssize(weight_) + std::ssize(bias_)) * static_cast<std::int64_t>(sizeof(float));
  }
  std::vector<std::span<std::byte>> storage() override {
    return {std::as_writable_bytes(std::span(weight_)), std::as_writable_bytes(std::span(bias_))};
  }
  void forward(ConstMatrix x, Matrix y) const override { linear_forward(x, weight(), bias_, y); }
  void backward(ConstMatrix dy, Matrix dx) const override { linear_backward(dy, weight(), dx); }

 private:
  ConstMatrix weight() const { return {weight_.data(), out_, in_}; }

  std::int64_t in_, out_;
  std::vector<float> weight_, bias_;
};

}  // namespace

std::unique_ptr<FrozenLinear> pack_linear(ConstMatrix weight, std::span<const float> bias, bool /*backward*/,
                                          WeightType type) {
  if (type == WeightType::f32) return std::make_unique<PlainLinear>(weight, bias);
  std::vector<float> rounded(static_cast<std::size_t>(weight.rows * weight.columns));
  const Matrix whole(rounded.data(), weight.rows, weight.columns);
  CompressedWeight(weight, type).widen(0, 0, whole);
  return std::make_unique<PlainLinear>(whole, bias);
}

void linear_forward(ConstMatrix x, ConstMatrix weight, std::span<const float> bias, Matrix y) {
  matmul(1.0F, x, Transpose::no, weight, Transpose::yes, 0.0F, y);
  if (bias.empty()) return;
  for (std::int64_t t = 0; t < y.rows; ++t) {
    for (std::int64_t i = 0; i < y.columns; ++i) y.row(t)[i] += bias[static_cast<std::size_t>(i)];
  }
}

void linear_backward(ConstMatrix dy, ConstMatrix weight, Matrix dx) {
  matmul(1.0F, dy, Transpose::no, weight, Transpose::no, 0.0F, dx);
}

}  // namespace braid::kernels::reference
