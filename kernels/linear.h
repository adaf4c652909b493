#pragma once

#include <memory>
#include <span>

#include "kernels/matrix.h"

namespace braid::kernels {

namespace reference {

/// y = x Wᵀ + bias. x [T, in], weight [out, in], bias [out] or empty, y [T, out].
void linear_forward(ConstMatrix x, ConstMatrix weight, std::span<const float> bias, Matrix y);
/// dx = dy W. dy [T, out], dx [T, in]. A frozen layer has no weight gradient.
void linear_backward(ConstMatrix dy, ConstMatrix weight, Matrix dx);

}  // namespace reference

namespace cpu {

/// A frozen linear layer whose weight is packed once for each direction: for oneDNN's matmul where the processor has
/// AVX-512, else for ours, which is at most a quarter slower than what oneDNN has there, and as quick up to a megabyte.
///
/// Rows of the result do not depend on T, on their place, or on the number of threads. Not for concurrent use.
class PackedLinear {
 public:
  /// Copies `weight` [out, in] and `bias` ([out] or empty); both may go away. `backward` false saves that copy.
  PackedLinear(ConstMatrix weight, std::span<const float> bias, bool backward = true);
  ~PackedLinear();
  PackedLinear(PackedLinear&&) noexcept;
  PackedLinear& operator=(PackedLinear&&) noexcept;

  std::int64_t in() const;
  std::int64_t out() const;
  /// Bytes that the packed copies hold.
  std::int64_t bytes() const;

  /// Compiles on this thread, for its number of threads, what products of eight rows or more are made of, for all
  /// layers of these sizes: else the first product that needs a part compiles it. Takes a few milliseconds and keeps
  /// half a megabyte a direction; nothing where the products are ours.
  void compile() const;

  /// y = x Wᵀ + bias; y lies apart from x.
  void forward(ConstMatrix x, Matrix y) const;
  /// dx = dy W; dx lies apart from dy.
  void backward(ConstMatrix dy, Matrix dx) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// How many parts of products this thread has compiled and keeps.
std::size_t compiled_products();

}  // namespace cpu
}  // namespace braid::kernels
