#include <array>

#include "kernels/columns.h"
#include "kernels/cuda/joined_product.h"
#include "kernels/cuda/memory.h"
#include "kernels/cuda/simt.h"
#include "kernels/cuda/tile_map.h"
#include "kernels/elementwise.h"
#include "kernels/linear.h"
#include "kernels/nf4.h"

namespace braid::kernels::cuda {
namespace {

/// CompressedWeight's, number by number.
template <typename Number>
struct WidenInt8 {
  const std::int8_t* bytes;
  const float* scales;  // of rows
  View<Number> to;
  __device__ void operator()(std::int64_t row, std::int64_t i) const {
    to.set(row, i, static_cast<float>(bytes[row * to.columns + i]) * (scales[row] / 127.0F));
  }
};

template <typename Number>
struct WidenNf4 {
  const std::uint8_t* pairs;
  const float* scales;  // of blocks of 64, row after row
  View<Number> to;
  __device__ void operator()(std::int64_t row, std::int64_t i) const {
    constexpr std::array<float, 16> kNumbers = nf4_numbers();
    const std::uint8_t pair = pairs[row * ((to.columns + 1) / 2) + i / 2];
    to.set(row, i, kNumbers[i % 2 == 0 ? pair & 15U : pair >> 4U] * scales[row * ((to.columns + 63) / 64) + i / 64]);
  }
};

/// Rows as their own type, or copied into scratch memory as another.
class Converted {
 public:
  Converted(ConstMatrix matrix, costmodel::DataType type)
      : scratch_(matrix.type == type ? 0 : matrix.rows * matrix.columns * costmodel::bytes_of(type)), view_(matrix) {
    if (matrix.type == type) return;
    const Matrix to(static_cast<float*>(scratch_.memory()), matrix.rows, matrix.columns, matrix.columns, type);
    copy(matrix, to);
    view_ = to;
  }
  ConstMatrix view() const { return view_; }

 private:
  Scratch scratch_;
  ConstMatrix view_;
};

/// A weight as it is multiplied, or compressed, which is widened into scratch memory for each product.
class CudaLinear final : public FrozenLinear {
 public:
  CudaLinear(ConstMatrix weight, std::span<const float> bias, WeightType type)
      : in_(weight.columns), out_(weight.rows), type_(type), computes_(activation_type()) {
    if (!bias.empty()) bias_ = device_copy(bias.data(), static_cast<std::int64_t>(bias.size_bytes()));
    if (type == WeightType::f32 && computes_ == costmodel::DataType::f32) {
      std::vector<float> rows;
      for (std::int64_t row = 0; row < out_; ++row) rows.insert(rows.end(), weight.row(row), weight.row(row) + in_);
      keep(0, std::as_bytes(std::span(rows)));
      return;
    }
    // What is multiplied in bf16 need not be held in more.
    if (type_ == WeightType::f32) type_ = WeightType::bf16;
    CompressedWeight compressed(weight, type_);
    const std::vector<std::span<std::byte>> parts = compressed.storage();
    for (std::size_t part = 0; part < parts.size(); ++part) keep(part, parts[part]);
  }

  std::int64_t in() const override { return in_; }
  std::int64_t out() const override { return out_; }
  ConstVector bias() const override { return {static_cast<const float*>(bias_.get()), bias_ ? out_ : 0}; }
  std::int64_t bytes() const override { return bytes_ + (bias_ ? out_ * static_cast<std::int64_t>(sizeof(float)) : 0); }
  std::vector<std::span<std::byte>> storage() override {
    std::vector<std::span<std::byte>> all;
    for (const Part& part : parts_)
      if (part.memory) all.emplace_back(static_cast<std::byte*>(part.memory.get()), part.bytes);
    if (bias_) all.emplace_back(static_cast<std::byte*>(bias_.get()), static_cast<std::size_t>(out_) * sizeof(float));
    return all;
  }

  void forward(ConstMatrix x, Matrix y) const override {
    product(x, Transpose::yes, y);
    if (bias_) add_row(1, bias(), y);
  }
  void backward(ConstMatrix dy, Matrix dx) const override { product(dy, Transpose::no, dx); }
  bool forward_joined(ConstMatrix x, Matrix y, std::span<const MatmulCall> added) const override {
    return joined(costmodel::Pass::forward, x, Transpose::yes, bias(), y, added);
  }
  bool backward_joined(ConstMatrix dy, Matrix dx, std::span<const MatmulCall> added) const override {
    return joined(costmodel::Pass::backward, dy, Transpose::no, {}, dx, added);
  }

 private:
  struct Part {
    std::shared_ptr<void> memory;
    std::size_t bytes = 0;
  };

  void keep(std::size_t part, std::span<const std::byte> bytes) {
    if (bytes.empty()) return;
    parts_[part] = {device_copy(bytes.data(), static_cast<std::int64_t>(bytes.size())), bytes.size()};
    bytes_ += static_cast<std::int64_t>(bytes.size());
  }

  void product(ConstMatrix x, Transpose transpose, Matrix y) const {
    if (x.rows == 0) return;
    const Multiplied weight(*this);
    const Converted input(x, computes_);
    large_matmul(input.view(), Transpose::no, weight.view(), transpose, y);
  }
  bool joined(costmodel::Pass pass, ConstMatrix x, Transpose transpose, ConstVector bias, Matrix y,
              std::span<const MatmulCall> added) const {
    if (!takes_second_kernel(costmodel::Operator::linear, pass, {in_, out_}, x.rows)) return false;
    if (!has_warpgroups() || x.type != costmodel::DataType::bf16) return false;
    const Multiplied weight(*this);
    if (!can_join(x, weight.view(), transpose, y, added)) return false;
    joined_product(x, weight.view(), transpose, bias, y, added);
    return true;
  }

  /// The weight as it is multiplied, in scratch memory where it is held otherwise.
  class Multiplied {
   public:
    explicit Multiplied(const CudaLinear& linear)
        : held_so_(linear.type_ == WeightType::f32 ||
                   (linear.type_ == WeightType::bf16 && linear.computes_ == costmodel::DataType::bf16)),
          widened_(held_so_ ? 0 : linear.in_ * linear.out_ * costmodel::bytes_of(linear.computes_)),
          view_(static_cast<float*>(held_so_ ? linear.parts_[0].memory.get() : widened_.memory()), linear.out_,
                linear.in_, linear.in_, linear.computes_) {
      if (!held_so_) linear.widen(view_);
    }
    ConstMatrix view() const { return view_; }

   private:
    bool held_so_;
    Scratch widened_;
    Matrix view_;
  };

  void widen(Matrix to) const {
    with_type(to.type, [&]<typename Number>(Number) {
      const auto* scales = static_cast<const float*>(parts_[3].memory.get());
      if (type_ == WeightType::bf16) {
        copy(ConstMatrix(static_cast<const float*>(parts_[0].memory.get()), out_, in_, in_, costmodel::DataType::bf16),
             to);
      } else if (type_ == WeightType::int8) {
        for_each(out_, in_,
                 WidenInt8<Number>{static_cast<const std::int8_t*>(parts_[1].memory.get()), scales, view<Number>(to)});
      } else {
        for_each(out_, in_,
                 WidenNf4<Number>{static_cast<const std::uint8_t*>(parts_[2].memory.get()), scales, view<Number>(to)});
      }
    });
  }

  std::int64_t in_, out_;
  WeightType type_;
  costmodel::DataType computes_;
  std::shared_ptr<void> bias_;
  std::array<Part, 4> parts_;  // as CompressedWeight::storage has them; f32 in the first
  std::int64_t bytes_ = 0;
};

}  // namespace

std::unique_ptr<FrozenLinear> pack_linear(ConstMatrix weight, std::span<const float> bias, bool /*backward*/,
                                          WeightType type) {
  return std::make_unique<CudaLinear>(weight, bias, type);
}

}  // namespace braid::kernels::cuda
