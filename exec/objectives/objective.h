#pragma once

#include "exec/batch.h"

namespace braid::exec {

/// What is made of token losses: the one place by which an objective comes in. Asked by the head of whatever rows it
/// scores, and told their losses; a microbatch goes backward once all chunks of its samples have gone forward, so that
/// what a row counts may depend on the losses of its whole sample. Not for concurrent use.
class Objective {
 public:
  virtual ~Objective() = default;
  /// The derivative of the objective by a token's weighted loss, as far as it is known before losses are.
  virtual double factor(const SampleRows& rows) const = 0;
  /// The loss of a scored row, times the row's weight.
  virtual void take(const SampleRows& rows, double weighted_loss) = 0;
  /// The rest of the derivative, the same for all rows of the sequence, where there is more once losses are told.
  virtual bool has_late_factor(const SampleRows& /*rows*/) const { return false; }
  virtual double late_factor(const SampleRows& /*rows*/) const { return 1; }
};

}  // namespace braid::exec
