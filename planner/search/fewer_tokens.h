#pragma once

#include <functional>
#include <optional>
#include <string>

#include "workload/sample_index.h"

namespace braid::planner {

/// A change to a workload that makes it fit, and what it costs.
struct Loss {
  double share = 0;  ///< of the tokens that a step of every task is billed
  std::string change;
};

using FitsWork = std::function<bool(const workload::Workload&, const workload::SampleIndex&)>;

/// What gives up the smallest share of a step's tokens: a lower max_length or global_batch_size for every task that has
/// more, or the tasks of the longest samples left out, each no further than needed: the next step towards what was
/// asked for does not fit. Nothing where none of these fits.
/// `fits` is asked about three times the logarithm of what there is to choose from.
std::optional<Loss> fewest_tokens_lost(const workload::Workload& workload, const workload::SampleIndex& samples,
                                       const FitsWork& fits);

/// The steps in which max_length is lowered: the power of two that is at most a 64th of the longest.
std::int64_t length_step(const workload::Workload& workload);

}  // namespace braid::planner
