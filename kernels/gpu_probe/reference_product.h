#pragma once

#include <cstdint>
#include <vector>

#include "kernels/gpu_probe/products.h"

namespace braid::gpu_probe {

/// D of the layout by plain loops in double, stored by columns; `a` and `b` as the layout says.
std::vector<double> reference_product(const ProductLayout& layout, const std::vector<double>& a,
                                      const std::vector<double>& b);

/// The number that these 16 bits are in bf16.
double from_bf16(std::uint16_t bits);

}  // namespace braid::gpu_probe
