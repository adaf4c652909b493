#pragma once

#include <cstdint>
#include <filesystem>

#include "costmodel/shapes/backbone.h"

namespace braid::exec {

/// How large the example's random backbone is.
enum class ExampleSize {
  tiny,   ///< 3 million parameters: 4 layers, hidden 256
  small,  ///< 54 million, 214 MB: 4 layers, hidden 1024; for measuring
};

costmodel::BackboneShape example_backbone(ExampleSize size);

/// Writes a working example into `folder`: models/tiny or models/small, a random Llama backbone with a byte-level
/// tokenizer; data/, four datasets; and workload.yaml, four tasks over them that run in seconds on the tiny one. The
/// bytes depend on `seed` and `size` alone.
///
/// Each file is written whole or not at all, workload.yaml last. Throws Error when `folder` is not empty, unless
/// `overwrite`, which replaces files of the same names and leaves others; Failure when it cannot be written.
void write_example(const std::filesystem::path& folder, std::uint64_t seed, bool overwrite = false,
                   ExampleSize size = ExampleSize::tiny);

}  // namespace braid::exec
