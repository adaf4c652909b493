#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "planner/latency/operator_graph.h"

namespace braid::planner {

/// What a microbatch launches on a stage without collectives: one kernel after another, on one stream.
struct SerialWork {
  /// The adapters of one frozen product of one layer, which may share launches with those of other hTasks.
  struct ProductAdapters {
    std::int32_t layer = 0;
    costmodel::ModuleGroup group = costmodel::ModuleGroup::qkv;
    bool forward = true;  ///< a layer that is computed again has each product twice
    Nanoseconds apart = 0;
    Nanoseconds additions = 0;  ///< of it: gradients put together, a launch of their own whoever is beside them
    std::vector<costmodel::OperatorCall> calls = {};  ///< the others

    bool same_product(const ProductAdapters& other) const {
      return layer == other.layer && group == other.group && forward == other.forward;
    }
  };

  Nanoseconds apart = 0;  ///< all of it, nothing shared
  std::vector<ProductAdapters> adapters;
};

/// `graph` has no communication.
SerialWork serial_work(const OperatorGraph& graph);

/// What a clock's schedule takes (launched_together) where nothing communicates: nothing runs beside anything, in
/// whatever order, so that launches add up. Where `share`, the adapters of one product of several microbatches are one
/// launch (MuxTune §3.4.3, Eq. 3) if all of them together are faster so. Cost: linear in calls; no schedule is made.
Nanoseconds serial_time(std::span<const SerialWork* const> clock, bool share, const LaunchPricing& pricing);

}  // namespace braid::planner
