#include "exec/objectives/preference.h"

#include <algorithm>
#include <cmath>

namespace braid::exec {
namespace {

/// -log sigmoid(z), without overflow.
double log_loss(double z) {
  return std::max(-z, 0.0) + std::log1p(std::exp(-std::abs(z)));
}

double sigmoid(double z) {
  return z >= 0 ? 1 / (1 + std::exp(-z)) : std::exp(z) / (1 + std::exp(z));
}

}  // namespace

PairTerms pair_terms(const workload::Objective& objective, const PairSums& now, const PairSums& reference) {
  const double smoothing = objective.label_smoothing;
  const double z = objective.beta * ((reference[0] - now[0]) - (reference[1] - now[1]));
  const double slope_by_z = smoothing * sigmoid(z) - (1 - smoothing) * sigmoid(-z);
  return {(1 - smoothing) * log_loss(z) + smoothing * log_loss(-z), z, -objective.beta * slope_by_z};
}

}  // namespace braid::exec
