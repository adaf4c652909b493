#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "planner/estimator/step_estimator.h"

namespace braid::sim {

/// Estimators that tell the same, lent to threads one each. A further one, which has to learn first, is made where none
/// is free and so many sets were asked for that the time is well spent; else whoever asks waits for one.
class EstimatorPool {
 public:
  using Make = std::function<std::unique_ptr<planner::StepEstimator>()>;

  /// Makes the first one, and throws what that throws.
  explicit EstimatorPool(Make make);

  /// Of any: what none but whoever made the pool asks before it is lent.
  const planner::StepEstimator& first() const { return *free_.front(); }

  /// Calls work(estimator) with one that nobody else has.
  template <typename Work>
  auto with(const Work& work) {
    const Loan loan(*this);
    return work(*loan.estimator);
  }

 private:
  struct Loan {
    explicit Loan(EstimatorPool& lender) : pool(lender), estimator(lender.take()) {}
    Loan(const Loan&) = delete;
    Loan& operator=(const Loan&) = delete;
    ~Loan() { pool.give_back(std::move(estimator)); }
    EstimatorPool& pool;
    std::unique_ptr<planner::StepEstimator> estimator;
  };

  std::unique_ptr<planner::StepEstimator> take();
  void give_back(std::unique_ptr<planner::StepEstimator> estimator);

  /// Sets that take about as long as learning does.
  static constexpr std::int64_t kAskedForAnother = 1000;

  Make make_;
  std::mutex mutex_;
  std::condition_variable given_back_;
  std::vector<std::unique_ptr<planner::StepEstimator>> free_;
  std::int64_t made_ = 1, asked_ = 0;
};

}  // namespace braid::sim
