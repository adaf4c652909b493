#pragma once

#include <cstddef>
#include <span>

#include "costmodel/gpu/gemm_model.h"

namespace braid::costmodel {

/// A measured product.
struct GemmPoint {
  GemmShape shape;
  double seconds = 0;
};

/// Fewer measured products, or of fewer sizes in each of the three, say too little of nine coefficients.
inline constexpr std::size_t kFewestProducts = 18, kFewestSizes = 2;
bool tells(std::span<const GemmPoint> points);

/// The coefficients under which gemm_seconds errs least, in relative terms, on `points`: a seeded global search, then a
/// local one; the same on every machine. Throws Error for points that do not
/// tell.
GemmCoefficients fit_gemm(std::span<const GemmPoint> points, const Device& device, DataType type);

}  // namespace braid::costmodel
