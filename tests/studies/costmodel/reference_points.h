#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "costmodel/gpu/stream_model.h"
#include "costmodel/profile/gemm_fit.h"

namespace braid::costmodel::studies {

/// An operator of a Llama-2 layer, measured elsewhere (Vidur's layer profiles): forward, in 16 bits, one shard.
struct ReferencePoint {
  std::string gpu;       ///< as in the file: a40, a100, h100
  std::string backbone;  ///< a built-in shape's name
  std::int64_t tp = 1;
  std::int64_t tokens = 0;
  std::string op;
  double seconds = 0;
};

inline constexpr std::string_view kReferencePointColumns = "gpu,model,tp,tokens,op,median_ms";
/// Reads a table with those columns. Throws Error "FILE:LINE: ..." for a row that is not so.
std::vector<ReferencePoint> read_reference_points(const std::filesystem::path& csv);

/// The product that a point measured; nothing for other operators.
std::optional<GemmPoint> gemm_of(const ReferencePoint& point);
/// The kind of kernel and the traffic that a point measured; nothing for products.
std::optional<std::pair<StreamKind, StreamPoint>> stream_of(const ReferencePoint& point);

}  // namespace braid::costmodel::studies
