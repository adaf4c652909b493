#include "sim/cluster/instances/estimator_pool.h"

#include <utility>

namespace braid::sim {

EstimatorPool::EstimatorPool(Make make) : make_(std::move(make)) {
  free_.push_back(make_());
}

std::unique_ptr<planner::StepEstimator> EstimatorPool::take() {
  std::unique_lock lock(mutex_);
  ++asked_;
  if (free_.empty() && asked_ >= made_ * kAskedForAnother) {
    ++made_;
    lock.unlock();
    return make_();
  }
  given_back_.wait(lock, [&] { return !free_.empty(); });
  std::unique_ptr<planner::StepEstimator> estimator = std::move(free_.back());
  free_.pop_back();
  return estimator;
}

void EstimatorPool::give_back(std::unique_ptr<planner::StepEstimator> estimator) {
  const std::lock_guard lock(mutex_);
  free_.push_back(std::move(estimator));
  given_back_.notify_one();
}

}  // namespace braid::sim
