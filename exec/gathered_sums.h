#pragma once

#include <memory>
#include <vector>

#include "exec/ranks/communicator.h"
#include "planner/program/program.h"

namespace braid::exec {

/// Exact sums of the gradients of some layers (kernels/outer_sums.h), as the ranks that have parts of them gather them:
/// adding them is exact in any order. Stays where it is until `start`'s request has ended.
class GatheredSums {
 public:
  /// `mine` as Adapter::sums gives them.
  GatheredSums(planner::LayerRange layers, std::vector<double> mine, std::size_t ranks)
      : layers_(layers),
        mine_(std::move(mine)),
        all_(ranks * mine_.size()),
        counts_(ranks, static_cast<int>(mine_.size())) {}

  std::unique_ptr<Request> start(CommunicatorGroup& ranks) { return ranks.all_gather(mine_, counts_, all_); }
  planner::LayerRange layers() const { return layers_; }
  /// Of all ranks.
  std::vector<double> sum() const {
    std::vector<double> sum(mine_.size(), 0);
    for (std::size_t i = 0; i < all_.size(); ++i) sum[i % sum.size()] += all_[i];
    return sum;
  }

 private:
  planner::LayerRange layers_;
  std::vector<double> mine_, all_;
  std::vector<int> counts_;  // per rank
};

}  // namespace braid::exec
