#pragma once

#include "exec/profiling/probed_backbone.h"
#include "exec/ranks/communicator.h"

namespace braid::exec {

/// A pass of one piece of work, forward and backward: 256 tokens in sequences of 64 through two layers and the head,
/// with adapters of rank 16 on all linear layers. Run for the profile, and again between a plan's windows, it tells how
/// much faster or slower the machine has become, which its speed at one product does not.
class ReferencePass {
 public:
  /// Allocates all that it needs, and warms up.
  ReferencePass(const costmodel::BackboneShape& backbone, kernels::Device& device);

  /// Of one pass after another, so that caches do not show what ran before: the mean over the ranks of `communicator`,
  /// all at work at once. Every rank calls this.
  double seconds(Communicator& communicator);
  /// The median of several, where one says too little of a run of `run_seconds` that it stands beside.
  double seconds_beside(double run_seconds, Communicator& communicator);

 private:
  double run();

  MeasuredPoint point_;
  ProbedBackbone backbone_;
};

/// What it took around a moment, the number of passes before it: the median of the two before and the two after, as far
/// as there are any. A pass is short: what holds a single one up says little of the time beside it.
double reference_around(std::span<const double> references, std::size_t moment);

/// Whether a machine that takes `pace` times as long as usual is about as fast as usual. Where it is not, no one factor
/// tells how long another piece of work would take: a neighbour slows down memory more than arithmetic.
inline bool usual_pace(double pace) {
  return 0.875 <= pace && pace <= 1.125;
}

/// `seconds[i]`, measured at paces[i], as they would be at a pace of 1: those measured at a usual pace, or all where
/// those are fewer than `fewest`.
std::vector<double> at_usual_pace(std::span<const double> seconds, std::span<const double> paces, std::size_t fewest);

}  // namespace braid::exec
