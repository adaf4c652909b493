#include "kernels/linear.h"

#include <algorithm>
#include <optional>
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

  std::int64_t bytes() const {
    return one_dnn_ ? one_dnn_->bytes() : panel_numbers_ * static_cast<std::int64_t>(sizeof(float));
  }

  void compile(bool bias) const {
    if (one_dnn_) one_dnn_->compile(bias);
  }

  /// y = x · weight + bias, `bias` [out] or empty.
  void multiply(ConstMatrix x, std::span<const float> bias, Matrix y) {
    if (one_dnn_) return one_dnn_->multiply(x, bias.empty() ? nullptr : bias.data(), y);
    if (!bias.empty())
      for_rows(y.rows, y.columns, [&](std::int64_t t) { std::copy(bias.begin(), bias.end(), y.row(t)); });
    multiply_panels(x, panels_.at_least(0), bias.empty() ? 0.0F : 1.0F, y);
  }

 private:
  std::optional<OneDnnProduct> one_dnn_;
  Scratch panels_;
  std::int64_t panel_numbers_ = 0;
};

struct PackedLinear::State {
  std::int64_t in = 0;
  std::int64_t out = 0;
  std::optional<FrozenProduct> forward;
  std::optional<FrozenProduct> backward;  ///< empty without a backward pass
  std::vector<float> bias;                ///< empty without a bias
};

PackedLinear::PackedLinear(ConstMatrix weight, std::span<const float> bias, bool backward)
    : state_(std::make_unique<State>()) {
  BRAID_CHECK(weight.rows > 0 && weight.columns > 0, "weight [{}, {}]", weight.rows, weight.columns);
  BRAID_CHECK(bias.empty() || std::ssize(bias) == weight.rows, "bias of {} for {} outputs", bias.size(), weight.rows);
  state_->in = weight.columns;
  state_->out = weight.rows;
  state_->forward.emplace(weight, Transpose::yes);
  if (backward) state_->backward.emplace(weight, Transpose::no);
  state_->bias.assign(bias.begin(), bias.end());
}

PackedLinear::~PackedLinear() = default;
PackedLinear::PackedLinear(PackedLinear&&) noexcept = default;
PackedLinear& PackedLinear::operator=(PackedLinear&&) noexcept = default;

std::int64_t PackedLinear::in() const {
  return state_->in;
}

std::int64_t PackedLinear::out() const {
  return state_->out;
}

std::int64_t PackedLinear::bytes() const {
  return state_->forward->bytes() + (state_->backward ? state_->backward->bytes() : 0) +
         std::ssize(state_->bias) * static_cast<std::int64_t>(sizeof(float));
}

void PackedLinear::compile() const {
  state_->forward->compile(!state_->bias.empty());
  if (state_->backward) state_->backward->compile(false);
}

void PackedLinear::forward(ConstMatrix x, Matrix y) const {
  BRAID_CHECK(x.columns == state_->in && y.columns == state_->out && x.rows == y.rows,
              "[{}, {}] to [{}, {}] by [{}, {}]", x.rows, x.columns, y.rows, y.columns, state_->out, state_->in);
  state_->forward->multiply(x, state_->bias, y);
}

void PackedLinear::backward(ConstMatrix dy, Matrix dx) const {
  BRAID_CHECK(dy.columns == state_->out && dx.columns == state_->in && dy.rows == dx.rows,
              "[{}, {}] to [{}, {}] by [{}, {}]", dy.rows, dy.columns, dx.rows, dx.columns, state_->out, state_->in);
  BRAID_CHECK(state_->backward, "made without a backward pass");
  state_->backward->multiply(dy, {}, dx);
}

std::size_t compiled_products() {
  return OneDnnProduct::compiled();
}

}  // namespace braid::kernels::cpu
