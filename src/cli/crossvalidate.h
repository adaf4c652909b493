#pragma once

#include <filesystem>

namespace braid::cli {

/// Fits the analytic model of matrix products on one backbone's layers of a table measured elsewhere, predicts the
/// other's, and prints the errors by GPU, tensor-parallel degree and tokens, with the coefficients fitted.
void crossvalidate(const std::filesystem::path& csv);

}  // namespace braid::cli
