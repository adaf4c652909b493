#include "exec/held_layers.h"

#include <algorithm>

#include "base/error.h"

namespace braid::exec {

HeldLayers::HeldLayers(std::vector<planner::LayerRange> runs) : runs_(std::move(runs)) {
  for (const planner::LayerRange& run : runs_) {
    for (std::int32_t layer = run.first; layer < run.last; ++layer) numbers_.push_back(layer);
  }
}

std::int64_t HeldLayers::place(std::int32_t layer) const {
  const auto found = std::lower_bound(numbers_.begin(), numbers_.end(), layer);
  BRAID_CHECK(found != numbers_.end() && *found == layer, "layer {} is not on this stage", layer);
  return found - numbers_.begin();
}

}  // namespace braid::exec
