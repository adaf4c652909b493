#pragma once

#include <functional>

#include "costmodel/profile.h"
#include "exec/communicator.h"

namespace braid::exec {

/// What a profile must cover.
struct MeasureRequest {
  costmodel::BackboneShape backbone;
  std::vector<costmodel::AdapterShape> adapters;  ///< each is measured; at least one
  std::int64_t most_tokens = 2048;                ///< of a microbatch
  std::int64_t longest_context = 512;             ///< of a sequence
  std::function<void(double)> on_progress;        ///< share done, 0..1, on rank 0
};

/// Measures every operator on this machine, with all ranks of `communicator` at work at once, as they will be in a run.
///
/// Operators are timed where they run: inside forward and backward passes of as many layers as a rank of a run has, of
/// random weights, over a geometric grid of token counts and context lengths, and of chunks with prefixes, so that
/// caches are as warm and as cold as in training. Each entry is a median over several passes after a warm-up. Every
/// rank calls this; rank 0 has the result.
costmodel::Profile measure_profile(const MeasureRequest& request, Communicator& communicator);

/// The best rate of a large f32 matrix product on this process's threads, FLOP/s: the median of several.
double measure_peak_flops();

/// The processor's name.
std::string machine_name();

}  // namespace braid::exec
