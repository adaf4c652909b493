#include "kernels/linear.h"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <tuple>
#include <vector>

#include "kernels/cpu/one_dnn_product.h"
#include "kernels/cpu/packed_panels.h"
#include "kernels/cpu/rows.h"
#include "kernels/cpu/scratch.h"

namespace braid::kernels::cpu {

/// Products by one weight [in, out], by oneDNN where its rows do not depend on each other, else by matmul's panels.
class FrozenProduct {
 public:
  /// The weight is `numbers`, transposed or as it stands.
  FrozenProduct(ConstMatrix numbers, Transpose transpose) {
    const bool transposed = transpose == Transpose::yes;
    const std::int64_t in = transposed ? numbers.columns : numbers.rows;
    const std::int64_t out = transposed ? numbers.rows : numbers.columns;
    one_dnn_ =
        OneDnnProduct::packed(numbers.data, in, out, transposed ? 1 : numbers.stride, transposed ? numbers.stride : 1);
    if (one_dnn_) return;
    panel_numbers_ = packed_numbers(in, out);
    pack_panels(numbers, transpose, panels_.at_least(panel_numbers_));
  }

  /// Packs another weight of the same size into the same memory.
  void refill(ConstMatrix numbers, Transpose transpose) {
    const bool transposed = transpose == Transpose::yes;
    if (!one_dnn_) return pack_panels(numbers, transpose, panels_.at_least(panel_numbers_));
    one_dnn_->refill(numbers.data, transposed ? 1 : numbers.stride, transposed ? numbers.stride : 1);
  }

  std::int64_t bytes() const {
    return one_dnn_ ? one_dnn_->bytes() : panel_numbers_ * static_cast<std::int64_t>(sizeof(float));
  }

  std::span<std::byte> storage() {
    if (one_dnn_) return one_dnn_->storage();
    return std::as_writable_bytes(
        std::span(panels_.at_least(panel_numbers_), static_cast<std::size_t>(panel_numbers_)));
  }

  void compile(bool bias) const {
    if (one_dnn_) one_dnn_->compile(bias);
  }

  /// y = x · weight + bias, `bias` [out] or empty.
  void multiply(ConstMatrix x, std::span<const float> bias, Matrix y) const {
    if (one_dnn_) return one_dnn_->multiply(x, bias.empty() ? nullptr : bias.data(), y);
    if (!bias.empty())
      for_rows(y.rows, y.columns, [&](std::int64_t t) { std::copy(bias.begin(), bias.end(), y.row(t)); });
    multiply_panels(x, panels_.numbers(), bias.empty() ? 0.0F : 1.0F, y);
  }

 private:
  std::optional<OneDnnProduct> one_dnn_;
  Scratch panels_;
  std::int64_t panel_numbers_ = 0;
};

namespace {

class PackedLinear final : public FrozenLinear {
 public:
  PackedLinear(ConstMatrix weight, std::span<const float> bias, bool backward)
      : in_(weight.columns),
        out_(weight.rows),
        forward_(weight, Transpose::yes),
        backward_(backward ? std::make_optional<FrozenProduct>(weight, Transpose::no) : std::nullopt),
        bias_(bias.begin(), bias.end()) {}

  std::int64_t in() const override { return in_; }
  std::int64_t out() const override { return out_; }
  ConstVector bias() const override { return bias_; }
  std::int64_t bytes() const override {
    return forward_.bytes() + (backward_ ? backward_->bytes() : 0) +
           std::ssize(bias_) * static_cast<std::int64_t>(sizeof(float));
  }

  std::vector<std::span<std::byte>> storage() override {
    std::vector<std::span<std::byte>> parts = {forward_.storage(), std::as_writable_bytes(std::span(bias_))};
    if (backward_) parts.push_back(backward_->storage());
    return parts;
  }

  void compile() const override {
    forward_.compile(!bias_.empty());
    if (backward_) backward_->compile(false);
  }

  void forward(ConstMatrix x, Matrix y) const override {
    BRAID_CHECK(x.columns == in_ && y.columns == out_ && x.rows == y.rows, "[{}, {}] to [{}, {}] by [{}, {}]", x.rows,
                x.columns, y.rows, y.columns, out_, in_);
    forward_.multiply(x, bias_, y);
  }

  void backward(ConstMatrix dy, Matrix dx) const override {
    BRAID_CHECK(dy.columns == out_ && dx.columns == in_ && dy.rows == dx.rows, "[{}, {}] to [{}, {}] by [{}, {}]",
                dy.rows, dy.columns, dx.rows, dx.columns, out_, in_);
    BRAID_CHECK(backward_, "made without a backward pass");
    backward_->multiply(dy, {}, dx);
  }

 private:
  std::int64_t in_, out_;
  FrozenProduct forward_;
  std::optional<FrozenProduct> backward_;  // empty without a backward pass
  std::vector<float> bias_;                // empty without a bias
};

/// A weight that is widened as it is used, so many numbers at a time: rows of it forward, which are columns of y, and
/// columns of it backward, which are those of dx.
class CompressedLinear final : public FrozenLinear {
 public:
  CompressedLinear(ConstMatrix weight, std::span<const float> bias, WeightType type)
      : weight_(weight, type), bias_(bias.begin(), bias.end()) {}

  std::int64_t in() const override { return weight_.columns(); }
  std::int64_t out() const override { return weight_.rows(); }
  ConstVector bias() const override { return bias_; }
  std::int64_t bytes() const override {
    return weight_.bytes() + std::ssize(bias_) * static_cast<std::int64_t>(sizeof(float));
  }
  std::vector<std::span<std::byte>> storage() override {
    std::vector<std::span<std::byte>> parts = weight_.storage();
    parts.push_back(std::as_writable_bytes(std::span(bias_)));
    return parts;
  }

  void forward(ConstMatrix x, Matrix y) const override {
    for_parts(out(), in(), [&](std::int64_t first, std::int64_t last, float* wide) {
      const Matrix rows(wide, last - first, in());
      weight_.widen(first, 0, rows);
      const auto part = bias_.empty() ? std::span<const float>()
                                      : std::span<const float>(bias_).subspan(static_cast<std::size_t>(first),
                                                                              static_cast<std::size_t>(last - first));
      packed(rows, Transpose::yes).multiply(x, part, y.column_range(first, last));
    });
  }

  void backward(ConstMatrix dy, Matrix dx) const override {
    for_parts(in(), out(), [&](std::int64_t first, std::int64_t last, float* wide) {
      const Matrix columns(wide, out(), last - first);
      weight_.widen(0, first, columns);
      packed(columns, Transpose::no).multiply(dy, {}, dx.column_range(first, last));
    });
  }

 private:
  /// The part packed into memory that all weights of these sizes share.
  static const FrozenProduct& packed(ConstMatrix part, Transpose transpose) {
    thread_local std::map<std::tuple<std::int64_t, std::int64_t, Transpose>, std::unique_ptr<FrozenProduct>> shared;
    std::unique_ptr<FrozenProduct>& product = shared[{part.rows, part.columns, transpose}];
    if (!product) {
      product = std::make_unique<FrozenProduct>(part, transpose);
    } else {
      product->refill(part, transpose);
    }
    return *product;
  }

  /// Calls work(first, last, memory) for parts of `count` rows or columns, each `length` numbers long, alike in size.
  template <typename Work>
  static void for_parts(std::int64_t count, std::int64_t length, const Work& work) {
    thread_local Scratch scratch;
    constexpr std::int64_t kGrain = 64;
    const std::int64_t parts = std::max<std::int64_t>(1, (count * length + kWidened - 1) / kWidened);
    const std::int64_t each = ((count + parts - 1) / parts + kGrain - 1) / kGrain * kGrain;
    float* memory = scratch.at_least(std::min(each, count) * length);
    for (std::int64_t first = 0; first < count; first += each) work(first, std::min(count, first + each), memory);
  }

  /// Numbers of a part at most, as long as 64 rows are fewer: two megabytes, which caches hold.
  static constexpr std::int64_t kWidened = std::int64_t{1} << 19;

  CompressedWeight weight_;
  std::vector<float> bias_;
};

}  // namespace

std::unique_ptr<FrozenLinear> pack_linear(ConstMatrix weight, std::span<const float> bias, bool backward,
                                          WeightType type) {
  BRAID_CHECK(weight.rows > 0 && weight.columns > 0, "weight [{}, {}]", weight.rows, weight.columns);
  BRAID_CHECK(bias.empty() || std::ssize(bias) == weight.rows, "bias of {} for {} outputs", bias.size(), weight.rows);
  if (type != WeightType::f32) return std::make_unique<CompressedLinear>(weight, bias, type);
  return std::make_unique<PackedLinear>(weight, bias, backward);
}

std::size_t compiled_products() {
  return OneDnnProduct::compiled();
}

}  // namespace braid::kernels::cpu
