#include "planner/plan/stage_layers.h"

#include <algorithm>

namespace braid::planner {

StageLayers::StageLayers(const std::vector<ReplicaShape>& deployment) : deployment_(deployment) {
  const bool like = std::all_of(deployment.begin(), deployment.end(),
                                [&](const ReplicaShape& replica) { return replica == deployment.front(); });
  std::size_t first = 0;
  for (const ReplicaShape& replica : deployment) {
    for (std::int32_t s = 0; s < replica.stages(); ++s) {
      const std::size_t place = (like ? 0 : first) + static_cast<std::size_t>(s);
      if (place == fewest_.size()) {
        fewest_.push_back(0);
        most_.push_back(replica.recompute_of(s).any() ? replica.layers_of(s) : 0);
      }
      places_.push_back(place);
      for (std::int32_t t = 0; t < replica.tp; ++t) place_of_rank_.push_back(place);
    }
    first += static_cast<std::size_t>(replica.stages());
  }
}

std::vector<ReplicaShape> StageLayers::in_the_middle() const {
  std::vector<ReplicaShape> deployment = deployment_;
  std::size_t stage = 0;
  for (ReplicaShape& replica : deployment) {
    for (std::int32_t s = 0; s < replica.stages(); ++s, ++stage) {
      if (replica.recompute.empty()) continue;
      const std::int64_t layers = middle(places_[stage]);
      costmodel::Recompute& recompute = replica.recompute[static_cast<std::size_t>(s)];
      recompute = layers > 0 ? costmodel::Recompute{recompute.kind, layers} : costmodel::Recompute{};
    }
  }
  return deployment;
}

void StageLayers::halve(const std::vector<bool>& rank_fits) {
  std::vector<bool> fits(fewest_.size(), true);
  for (std::size_t rank = 0; rank < rank_fits.size(); ++rank) {
    if (!rank_fits[rank]) fits[place_of_rank_[rank]] = false;
  }
  for (std::size_t place = 0; place < fewest_.size(); ++place) {
    if (fewest_[place] == most_[place]) continue;
    (fits[place] ? most_[place] : fewest_[place]) = middle(place) + (fits[place] ? 0 : 1);
  }
}

}  // namespace braid::planner
