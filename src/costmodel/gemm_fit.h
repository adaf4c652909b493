#pragma once

#include <cstddef>
#include <span>

#include "costmodel/gemm_model.h"

namespace braid::costmodel {

/// A measured product.
struct GemmPoint {
  GemmShape shape;
  double seconds = 0;
};

/// Fewer measured products say too little of nine coefficients.
inline constexpr std::size_t kFewestProducts = 18;

/// The coefficients under which gemm_seconds errs least, in relative terms, on `points`: a seeded global search, then a
/// local one; the same on every machine. Needs kFewestProducts points or
/// more that differ in all three sizes; throws Error for fewer.
GemmCoefficients fit_gemm(std::span<const GemmPoint> points, const Device& device, DataType type);

}  // namespace braid::costmodel
