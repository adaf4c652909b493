#pragma once

#include <span>

#include "costmodel/gemm_model.h"

namespace braid::costmodel {

/// A measured product.
struct GemmPoint {
  GemmShape shape;
  double seconds = 0;
};

/// The coefficients under which gemm_seconds errs least, in relative terms, on `points`: a seeded global search, then a
/// local one; the same on every machine. Needs a few dozen points that differ in all three sizes.
GemmCoefficients fit_gemm(std::span<const GemmPoint> points, const Device& device, DataType type);

}  // namespace braid::costmodel
