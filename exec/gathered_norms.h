#pragma once

#include <memory>
#include <vector>

#include "exec/ranks/communicator.h"
#include "planner/program/program.h"

namespace braid::exec {

/// The squared gradient norms of one task, one number a layer, as the ranks of a replica gather them. Stays where it is
/// until `start`'s request has ended.
class GatheredNorms {
 public:
  /// Gives `mine`, of this rank's layers in their order; of the shards of a stage only the first gives any.
  std::unique_ptr<Request> start(const planner::Program& program, planner::GroupIndex group, std::vector<double> mine,
                                 CommunicatorGroup& ranks);
  /// Of all layers, added from the first on: the same number on every rank and on any number of stages.
  double sum() const;

 private:
  std::vector<double> mine_, all_;
  std::vector<std::int32_t> layers_;  // whose they are
};

}  // namespace braid::exec
