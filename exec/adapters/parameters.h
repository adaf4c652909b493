#pragma once

#include <cstdint>
#include <vector>

#include "costmodel/shapes/adapter.h"

namespace braid::exec {

/// What a trained matrix is in its adapter's method.
enum class Role : std::int8_t {
  a,          ///< [r, in]
  b,          ///< [out, r]
  magnitude,  ///< [1, out], DoRA's
  lambda_d,   ///< [1, r], VeRA's
  lambda_b,   ///< [1, out]
  scale,      ///< [1, in or out], IA³'s
  prefix,     ///< [virtual tokens, 2 Hkv · D]: keys, then values
  down,       ///< [width between, H], the bottleneck's
  down_bias,  ///< [1, width between]
  up,         ///< [H, width between]
  up_bias,    ///< [1, H]
  difference  ///< [1, numbers], in the order of rows
};

/// How a matrix begins.
enum class Initial : std::int8_t {
  zeros,
  ones,
  tenth,         ///< 0.1
  uniform,       ///< in ±1/√columns, as PEFT draws A
  normal,        ///< of deviation 1, as PEFT draws prefixes
  small_normal,  ///< of deviation 0.02, as AdapterHub draws bottlenecks
  row_norms      ///< |W| of each output
};

struct ParameterShape {
  Role role = Role::a;
  costmodel::Module module = costmodel::Module::q;  ///< `q` of what stands beside no product
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  Initial initial = Initial::zeros;
  std::int64_t count() const { return rows * columns; }
};

/// The trained matrices of one decoder layer, in the order in which their numbers stand: group after group; the A
/// matrices of a group's targets stand together, so that modules that read the same input share a product.
std::vector<ParameterShape> layer_parameters(const costmodel::BackboneShape& backbone,
                                             const costmodel::AdapterShape& adapter);

}  // namespace braid::exec
