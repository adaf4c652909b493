#pragma once

#include "exec/communicator.h"
#include "exec/probed_backbone.h"

namespace braid::exec {

/// A pass of one piece of work, forward and backward: 256 tokens in sequences of 64 through two layers and the head,
/// with adapters of rank 16 on all linear layers. Run for the profile, and again between a plan's windows, it tells how
/// much faster or slower the machine has become, which its speed at one product does not.
class ReferencePass {
 public:
  /// Allocates all that it needs, and warms up.
  explicit ReferencePass(const costmodel::BackboneShape& backbone);

  /// Of one pass after another, so that caches do not show what ran before: the mean over the ranks of `communicator`,
  /// all at work at once. Every rank calls this.
  double seconds(Communicator& communicator);

 private:
  double run();

  std::vector<Batch> batches_;
  ProbedBackbone backbone_;
};

/// What it took around a moment, the number of passes before it: the median of the two before and the two after, as far
/// as there are any. A pass is short: what holds a single one up says little of the time beside it.
double reference_around(std::span<const double> references, std::size_t moment);

}  // namespace braid::exec
