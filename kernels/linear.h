#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "kernels/compressed.h"
#include "kernels/matmul.h"

namespace braid::kernels {

/// A frozen linear layer, its weight [out, in] held as a device wants it. Not for concurrent use.
class FrozenLinear {
 public:
  virtual ~FrozenLinear() = default;
  virtual std::int64_t in() const = 0;
  virtual std::int64_t out() const = 0;
  /// [out], or empty.
  virtual ConstVector bias() const = 0;
  /// Bytes that it holds.
  virtual std::int64_t bytes() const = 0;

  /// The memory that holds it, in parts: that of the forward pass and of the bias, then what the backward pass alone
  /// reads. Of two that a device packed from weights of one size, one computes as the other does once the other's
  /// memory is copied into its own; of one packed without a backward pass the parts are the other's first.
  virtual std::vector<std::span<std::byte>> storage() = 0;

  /// Compiles on this thread, for its number of threads, what products of eight rows or more are made of, for all
  /// layers of these sizes: else the first product that needs a part compiles it. Takes a few milliseconds and keeps
  /// half a megabyte a direction where a library compiles; else nothing.
  virtual void compile() const {}

  /// y = x Wᵀ + bias. x [T, in], y [T, out], which lies apart from x.
  virtual void forward(ConstMatrix x, Matrix y) const = 0;
  /// The same, and what is `added`: products of parts of y with beta 1, one after another where they meet. False where
  /// this does not make them in one; nothing is done then.
  virtual bool forward_joined(ConstMatrix /*x*/, Matrix /*y*/, std::span<const MatmulCall> /*added*/) const {
    return false;
  }
  /// dx = dy W. dy [T, out], dx [T, in], which lies apart from dy. A frozen layer has no weight gradient.
  virtual void backward(ConstMatrix dy, Matrix dx) const = 0;
  virtual bool backward_joined(ConstMatrix /*dy*/, Matrix /*dx*/, std::span<const MatmulCall> /*added*/) const {
    return false;
  }
};

/// Copies `weight` [out, in], rounded to what `type` holds, and `bias` ([out] or empty); both may go away. `backward`
/// false: that pass is never asked for.
using PackLinear = std::unique_ptr<FrozenLinear>(ConstMatrix weight, std::span<const float> bias, bool backward,
                                                 WeightType type);

namespace reference {
PackLinear pack_linear;
void linear_forward(ConstMatrix x, ConstMatrix weight, std::span<const float> bias, Matrix y);
void linear_backward(ConstMatrix dy, ConstMatrix weight, Matrix dx);
}  // namespace reference

/// Packed once for each direction: for oneDNN's matmul where the processor has AVX-512, else for ours, which is at most
/// a quarter slower than what oneDNN has there, and as quick up to a megabyte. Rows of the result do not depend on T,
/// on their place, or on the number of threads. Weights of other types are held once, and widened a part at a time
/// into memory that all of them share.
namespace cpu {
PackLinear pack_linear;
/// How many parts of products this thread has compiled and keeps.
std::size_t compiled_products();
}  // namespace cpu

namespace cuda {
PackLinear pack_linear;
}  // namespace cuda

}  // namespace braid::kernels
