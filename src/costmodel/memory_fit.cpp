#include "costmodel/memory_fit.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "costmodel/least_squares.h"

namespace braid::costmodel {

double MemoryFit::bytes(std::int64_t batch, std::int64_t length) const {
  const double tokens = static_cast<double>(batch) * static_cast<double>(length);
  return base + linear * tokens + quadratic * tokens * static_cast<double>(length);
}

MemoryFit MemoryLearner::fit() const {
  const auto rows = static_cast<Eigen::Index>(points_.size());
  Eigen::MatrixXd a(rows, 3);
  for (Eigen::Index i = 0; i < rows; ++i) {
    const MemoryPoint& point = points_[static_cast<std::size_t>(i)];
    if (point.bytes <= 0 || point.batch <= 0 || point.length <= 0)
      throw error("a measured point of {} bytes for {} sequences of {} tokens cannot be fitted; leave it out",
                  point.bytes, point.batch, point.length);
    const double tokens = static_cast<double>(point.batch) * static_cast<double>(point.length);
    const auto bytes = static_cast<double>(point.bytes);
    a(i, 0) = 1 / bytes;
    a(i, 1) = tokens / bytes;
    a(i, 2) = tokens * static_cast<double>(point.length) / bytes;
  }
  const Eigen::VectorXd solution = non_negative_least_squares(a, Eigen::VectorXd::Ones(rows));
  MemoryFit fit{solution[0], solution[1], solution[2]};
  for (const MemoryPoint& point : points_) {
    const double error = std::abs(fit.bytes(point.batch, point.length) / static_cast<double>(point.bytes) - 1);
    fit.mean_error += error / static_cast<double>(points_.size());
    fit.worst_error = std::max(fit.worst_error, error);
  }
  return fit;
}

}  // namespace braid::costmodel
