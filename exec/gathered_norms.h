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
  /// Of this rank's layers in their order: to be there when `start` is called.
  std::vector<double>& mine() { return mine_; }
  /// Of the shards of a stage only the first `gives` its own.
  void prepare(const planner::Program& program, planner::GroupIndex group, bool gives);
  std::unique_ptr<Request> start(CommunicatorGroup& ranks);
  /// Of all layers, added from the first on: the same number on every rank and on any number of stages.
  double sum() const;

 private:
  bool gives_ = true;
  std::vector<double> mine_, all_;
  std::vector<int> counts_;           // per rank
  std::vector<std::int32_t> layers_;  // whose they are
};

}  // namespace braid::exec
