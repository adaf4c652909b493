#pragma once

#include <filesystem>
#include <string_view>

namespace braid::gpu_probe {

/// Throws UsageError when a file could not be written there: asked before measuring, whose result would be lost.
void check_output(const std::filesystem::path& path, bool overwrite);

/// Writes under a temporary name beside `path`, then renames. Throws Failure.
void write_output(const std::filesystem::path& path, std::string_view content);

}  // namespace braid::gpu_probe
