#pragma once

#include <algorithm>
#include <vector>

#include "planner/program/program.h"

namespace braid::exec {

/// The layers of the backbone that a rank holds: one run of them, or several of an interleaved stage, ascending. What
/// is kept of them stands layer after layer.
class HeldLayers {
 public:
  HeldLayers() = default;
  HeldLayers(planner::LayerRange run) : HeldLayers(std::vector<planner::LayerRange>{run}) {}
  explicit HeldLayers(std::vector<planner::LayerRange> runs);

  const std::vector<planner::LayerRange>& runs() const { return runs_; }
  /// Every layer's number in the backbone.
  const std::vector<std::int32_t>& numbers() const { return numbers_; }
  std::int64_t count() const { return static_cast<std::int64_t>(numbers_.size()); }
  bool holds(std::int32_t layer) const { return std::ranges::binary_search(numbers_, layer); }
  /// Of a layer, which must be here: how many others stand before it.
  std::int64_t place(std::int32_t layer) const;
  bool first_of_backbone() const { return !numbers_.empty() && numbers_.front() == 0; }
  bool last_of_backbone(std::int64_t layers) const { return !numbers_.empty() && numbers_.back() + 1 == layers; }

 private:
  std::vector<planner::LayerRange> runs_;
  std::vector<std::int32_t> numbers_;
};

}  // namespace braid::exec
