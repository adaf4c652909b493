#pragma once

#include <array>

#include "workload/objective.h"

namespace braid::exec {

/// By sequence of a pair, the chosen one first.
using PairSums = std::array<double, 2>;

/// Direct preference optimization of one pair (Rafailov et al. 2023, Eq. 7): of the sums of the token losses of both
/// sequences, which are their log-probabilities but for the sign, now and as the task began.
struct PairTerms {
  double loss = 0;    ///< -(1 - smoothing) log sigmoid(z) - smoothing log sigmoid(-z)
  double margin = 0;  ///< z: beta times what the chosen sequence gained in log-probability beyond the rejected one
  double slope = 0;   ///< of the loss by the chosen sequence's sum; by the rejected one's it is the negative
};

PairTerms pair_terms(const workload::Objective& objective, const PairSums& now, const PairSums& reference);

}  // namespace braid::exec
