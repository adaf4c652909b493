#pragma once

#include <vector>

#include "costmodel/shapes/backbone.h"

namespace braid::exec {

/// Rotary frequencies theta^(−2i/D), i < D/2, in radians a position, stretched by the backbone's rule: linear divides
/// them all, Llama 3.1's and YaRN's (Peng et al. 2023) rules divide the slow ones, keep the fast ones, and blend
/// between.
std::vector<float> rope_frequencies(const costmodel::BackboneShape& backbone);

}  // namespace braid::exec
