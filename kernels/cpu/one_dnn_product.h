#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include <dnnl.hpp>

#include "kernels/matrix.h"

namespace braid::kernels::cpu {

/// Products by one frozen weight in oneDNN's quick matmul, whose rows do not depend on each other. oneDNN has it for
/// processors with AVX-512: its older one, which it takes elsewhere, rounds a row by how many follow it.
class OneDnnProduct {
 public:
  /// Packs the weight [in, out], numbers `row_step` and `column_step` apart; nothing where oneDNN has just the older
  /// matmul for it.
  static std::optional<OneDnnProduct> packed(const float* weight, std::int64_t in, std::int64_t out,
                                             std::int64_t row_step, std::int64_t column_step);

  /// Packs another weight of the same size into the same memory.
  void refill(const float* weight, std::int64_t row_step, std::int64_t column_step);
  /// Bytes of the packed weight.
  std::int64_t bytes() const;
  std::span<std::byte> storage();
  /// Compiles on this thread what products of eight rows or more are made of; `bias` as multiply will have it.
  void compile(bool bias) const;
  /// y = x · weight + bias, `bias` [out] or null.
  void multiply(ConstMatrix x, const float* bias, Matrix y) const;

  /// How many parts of products this thread has compiled and keeps.
  static std::size_t compiled();

 private:
  explicit OneDnnProduct(dnnl::memory weight) : weight_(std::move(weight)) {}
  dnnl::memory weight_;
};

}  // namespace braid::kernels::cpu
