#pragma once

#include <memory>
#include <vector>

#include "exec/ranks/communicator.h"

namespace braid::exec {

/// Of all ranks, in their order.
std::unique_ptr<CommunicatorGroup> group_of_all(Communicator& communicator);

/// What a window left behind on every rank, while it is exchanged: as many numbers of each rank, whose meaning depends
/// on their place alone.
class WindowExchange {
 public:
  /// Begins; `group` is of all ranks.
  WindowExchange(std::vector<double> mine, const Communicator& communicator, CommunicatorGroup& group);
  /// Waits until all ranks' numbers have come. What follows is asked afterwards alone.
  void finish();

  std::size_t size() const { return mine_.size(); }
  /// Of all ranks' numbers at that place, added from rank 0 on.
  double sum(std::size_t place) const;
  double least(std::size_t place) const;
  double most(std::size_t place) const;

 private:
  std::vector<double> mine_, all_;
  std::unique_ptr<Request> request_;
};

}  // namespace braid::exec
