#pragma once

#include <filesystem>

namespace braid::cli {

/// Holds a measured profile against itself: predicts each point that lies between two others of its curve from the rest
/// and prints the errors by operator. Throws Error where no point does.
void crossvalidate(const std::filesystem::path& file);

}  // namespace braid::cli
