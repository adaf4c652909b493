#pragma once

#include <cstdint>
#include <filesystem>

#include "costmodel/shapes/backbone.h"

namespace braid::exec {

/// Writes config.json and model.safetensors of a random Llama backbone into `folder`, which depend on shape and seed
/// alone. Throws Failure when they cannot be written.
void write_random_backbone(const std::filesystem::path& folder, const costmodel::BackboneShape& shape,
                           std::uint64_t seed);

}  // namespace braid::exec
