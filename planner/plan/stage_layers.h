#pragma once

#include <vector>

#include "planner/program/lower.h"

namespace braid::planner {

/// How few layers each stage of a deployment must recompute, each so as it recomputes, found by halving: all stages at
/// once, as what one holds says nothing of another. Stages of like replicas have to be alike.
class StageLayers {
 public:
  /// Of a deployment that fits with all layers recomputed of each stage that recomputes any; it must outlive this.
  explicit StageLayers(const std::vector<ReplicaShape>& deployment);

  /// The deployment with the middle of what is left.
  std::vector<ReplicaShape> in_the_middle() const;
  /// Halves what is left between what does not fit and what does, given which ranks fit with the middle.
  void halve(const std::vector<bool>& rank_fits);
  /// Whether the middle is all that is left.
  bool found() const { return fewest_ == most_; }

 private:
  std::int64_t middle(std::size_t place) const { return (fewest_[place] + most_[place]) / 2; }

  const std::vector<ReplicaShape>& deployment_;
  std::vector<std::int64_t> fewest_, most_;  // per place: of these numbers the least that fits is one
  std::vector<std::size_t> places_;          // per stage of all replicas
  std::vector<std::size_t> place_of_rank_;
};

}  // namespace braid::planner
