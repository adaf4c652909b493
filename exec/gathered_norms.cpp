#include "exec/gathered_norms.h"

#include <numeric>

namespace braid::exec {

void GatheredNorms::prepare(const planner::Program& program, planner::GroupIndex group, bool gives) {
  gives_ = gives;
  layers_.clear();
  counts_.clear();
  for (const planner::StageIndex stage : program.groups[static_cast<std::size_t>(group)].stages) {
    const planner::StageProgram& member = program.stages[static_cast<std::size_t>(stage)];
    counts_.push_back(static_cast<int>(member.layer_count()));
    counts_.resize(counts_.size() + member.ranks.size() - 1, 0);
    for (const planner::LayerRange& run : member.layers) {
      for (std::int32_t layer = run.first; layer < run.last; ++layer) layers_.push_back(layer);
    }
  }
  all_.assign(layers_.size(), 0);
}

std::unique_ptr<Request> GatheredNorms::start(CommunicatorGroup& ranks) {
  return ranks.all_gather(gives_ ? std::span<const double>(mine_) : std::span<const double>(), counts_, all_);
}

double GatheredNorms::sum() const {
  std::vector<double> by_layer(all_.size());
  for (std::size_t i = 0; i < all_.size(); ++i) by_layer[static_cast<std::size_t>(layers_[i])] = all_[i];
  return std::accumulate(by_layer.begin(), by_layer.end(), 0.0);
}

}  // namespace braid::exec
