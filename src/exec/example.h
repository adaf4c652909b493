#pragma once

#include <cstdint>
#include <filesystem>

namespace braid::exec {

/// Writes a working example into `folder`: models/tiny, a random Llama backbone of 3 million parameters with a
/// byte-level tokenizer; data/, four datasets; and workload.yaml, four tasks over them that run in seconds. The bytes
/// depend on `seed` alone.
///
/// Each file is written whole or not at all, workload.yaml last. Throws Error when `folder` is not empty, unless
/// `overwrite`, which replaces files of the same names and leaves others; Failure when it cannot be written.
void write_example(const std::filesystem::path& folder, std::uint64_t seed, bool overwrite = false);

}  // namespace braid::exec
