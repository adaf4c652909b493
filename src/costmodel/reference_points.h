#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "costmodel/gemm_fit.h"

namespace braid::costmodel {

/// A linear layer of a Llama-2 backbone, measured elsewhere (Vidur's layer profiles), forward, in 16 bits.
struct ReferenceLinear {
  std::string gpu;       ///< as in the file: a40, a100, h100
  std::string backbone;  ///< a built-in shape's name
  std::int64_t tp = 1;
  GemmPoint point;
};

/// Reads a table gpu,model,tp,tokens,op,median_ms and keeps its linear layers, whose sharded shapes follow from the
/// model. Throws Error "FILE:LINE: ..." for a row that is not so.
std::vector<ReferenceLinear> read_reference_linears(const std::filesystem::path& csv);

}  // namespace braid::costmodel
