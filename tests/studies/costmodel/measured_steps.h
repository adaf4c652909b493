#pragma once

#include <filesystem>

namespace braid::costmodel::studies {

/// Holds the model against steps that scripts/gpu/measure_layers.py measured on a GPU: what a Forward with its Backward
/// takes by its kernels and by the clock, what a layer keeps between them, and what a step holds at most. The GPU's
/// profile is derived from the datasheet of `gpu`, or read from a file. Throws Error "FILE:LINE: ..." for another
/// table.
void print_measured_steps(const std::filesystem::path& csv, const std::string& gpu_or_profile);

}  // namespace braid::costmodel::studies
