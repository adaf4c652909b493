#pragma once

#include <cstdint>

#include "base/node.h"

namespace braid::costmodel {

/// By which rule rotary frequencies are stretched beyond the pre-training length, with Hugging Face's names; `plain`
/// is its "default".
enum class RopeKind { plain, linear, llama3, yarn };

struct RopeScaling {
  RopeKind kind = RopeKind::plain;
  double factor = 1.0;
  double low_frequency_factor = 1.0;   ///< llama3
  double high_frequency_factor = 1.0;  ///< llama3
  double original_max_position = 0.0;  ///< llama3, yarn: positions of pre-training
  double beta_fast = 32.0;             ///< yarn: turns within those positions above which a frequency is kept
  double beta_slow = 1.0;              ///< yarn: turns below which it is divided by `factor`
  bool truncate = true;                ///< yarn: the range between them ends at whole dimensions
  double attention_factor = 1.0;       ///< yarn: cosines and sines are multiplied by this

  bool operator==(const RopeScaling&) const = default;
};

/// Rotary positions: theta, and how its frequencies are stretched.
struct Rope {
  double theta = 10000.0;
  RopeScaling scaling;

  bool operator==(const Rope&) const = default;
};

/// What `rope_parameters` (transformers 5), or `rope_theta` and `rope_scaling` (transformers 4) of a config.json say.
/// Throws Error for a rule that braid does not know, for keys that the rule has not, and where both forms are there and
/// say different things.
Rope read_rope(const Node& config, std::int64_t max_position);

}  // namespace braid::costmodel
