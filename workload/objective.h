#pragma once

#include <cstdint>

namespace braid::workload {

/// What a task's steps make smaller.
enum class ObjectiveKind {
  sft,  ///< the sum of its weighted token losses, over the supervised tokens of the global batch
  /// Direct preference optimization (Rafailov et al. 2023): the mean over pairs of -log sigmoid(z), where z is `beta`
  /// times what the chosen sequence has gained in log-probability since the task began, less what the rejected one has.
  dpo,
};

struct Objective {
  ObjectiveKind kind = ObjectiveKind::sft;
  double beta = 0.1;           ///< of dpo
  double label_smoothing = 0;  ///< of dpo: the share of pairs taken to be the wrong way round (cDPO), below 1/2

  /// Whether its samples are pairs of a chosen and a rejected sequence.
  bool pairs() const { return kind == ObjectiveKind::dpo; }
  /// Sequences of a sample.
  std::int64_t sequences() const { return pairs() ? 2 : 1; }
  bool operator==(const Objective&) const = default;
};

}  // namespace braid::workload
