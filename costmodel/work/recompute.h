#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>

namespace braid::costmodel {

/// What a Backward computes again of a layer, so that its Forward need not keep it (Chen et al. 2016; Korthikanti et
/// al. 2022).
enum class RecomputeKind {
  none,
  selective,  ///< attention's result, and what the feed-forward makes between its products
  full        ///< all but the layer's input, and the keys and values that later chunks read
};
std::string_view name(RecomputeKind kind);
/// Throws Error that lists what is known.
RecomputeKind recompute_kind_of(std::string_view name);

/// What a stage computes again: of its lowest `layers` layers.
struct Recompute {
  RecomputeKind kind = RecomputeKind::none;
  std::int64_t layers = 0;

  bool operator==(const Recompute&) const = default;
  bool any() const { return kind != RecomputeKind::none && layers > 0; }
  /// The same of a run of `count` layers that begins `first` layers above the stage's lowest.
  Recompute of_run(std::int64_t first, std::int64_t count) const {
    const std::int64_t here = std::clamp<std::int64_t>(layers - first, 0, count);
    return here > 0 && kind != RecomputeKind::none ? Recompute{kind, here} : Recompute{};
  }
};

}  // namespace braid::costmodel
