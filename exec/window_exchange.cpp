#include "exec/window_exchange.h"

#include <algorithm>
#include <numeric>
#include <thread>

namespace braid::exec {

std::unique_ptr<CommunicatorGroup> group_of_all(Communicator& communicator) {
  std::vector<int> ranks(static_cast<std::size_t>(communicator.size()));
  std::iota(ranks.begin(), ranks.end(), 0);
  return communicator.make_group(ranks);
}

WindowExchange::WindowExchange(std::vector<double> mine, const Communicator& communicator, CommunicatorGroup& group)
    : mine_(std::move(mine)), all_(mine_.size() * static_cast<std::size_t>(communicator.size())) {
  const std::vector<int> counts(static_cast<std::size_t>(communicator.size()), static_cast<int>(mine_.size()));
  request_ = group.all_gather(mine_, counts, all_);
}

void WindowExchange::finish() {
  while (!request_->done()) std::this_thread::yield();
}

double WindowExchange::sum(std::size_t place) const {
  double sum = 0;
  for (std::size_t i = place; i < all_.size(); i += size()) sum += all_[i];
  return sum;
}

double WindowExchange::least(std::size_t place) const {
  double least = all_[place];
  for (std::size_t i = place; i < all_.size(); i += size()) least = std::min(least, all_[i]);
  return least;
}

double WindowExchange::most(std::size_t place) const {
  double most = all_[place];
  for (std::size_t i = place; i < all_.size(); i += size()) most = std::max(most, all_[i]);
  return most;
}

}  // namespace braid::exec
