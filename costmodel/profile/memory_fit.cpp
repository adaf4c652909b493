#include "costmodel/profile/memory_fit.h"

#include <algorithm>
#include <cmath>
#include <map>

#include <Eigen/LU>

#include "base/error.h"
#include "costmodel/profile/least_squares.h"

namespace braid::costmodel {

double MemoryFit::bytes(std::int64_t batch, std::int64_t length) const {
  const double tokens = static_cast<double>(batch) * static_cast<double>(length);
  return base + linear * tokens + quadratic * tokens * static_cast<double>(length);
}

namespace {

/// A half-space of the coefficients: normal · coefficients <= limit.
struct HalfSpace {
  Eigen::Vector3d normal;
  double limit = 0;
};

/// The largest value of `goal` over the polytope, which is bounded, at one of its corners; nothing where it is empty.
std::optional<double> largest_at_corner(const std::vector<HalfSpace>& sides, const Eigen::Vector3d& goal) {
  constexpr double kTolerance = 1e-9;
  std::optional<double> largest;
  Eigen::Matrix3d planes;
  for (std::size_t i = 0; i < sides.size(); ++i) {
    for (std::size_t j = i + 1; j < sides.size(); ++j) {
      for (std::size_t k = j + 1; k < sides.size(); ++k) {
        planes << sides[i].normal.transpose(), sides[j].normal.transpose(), sides[k].normal.transpose();
        if (std::abs(planes.determinant()) < 1e-14) continue;
        const Eigen::Vector3d corner =
            planes.inverse() * Eigen::Vector3d(sides[i].limit, sides[j].limit, sides[k].limit);
        const bool inside = std::all_of(sides.begin(), sides.end(), [&](const HalfSpace& side) {
          return side.normal.dot(corner) <= side.limit + kTolerance;
        });
        if (inside) largest = std::max(largest.value_or(0), goal.dot(corner));
      }
    }
  }
  return largest;
}

}  // namespace

std::optional<double> MemoryLearner::most(std::int64_t batch, std::int64_t length, double error,
                                          double linear_factor) const {
  // Between which bytes the fit of each shape must be.
  std::map<std::pair<std::int64_t, std::int64_t>, std::pair<double, double>> known;
  for (auto point = points_.rbegin(); point != points_.rend(); ++point) {
    const std::pair shape(point->batch, point->length);
    if (known.size() == kShapes && !known.contains(shape)) continue;
    const auto bytes = static_cast<double>(point->bytes);
    const auto [between, is_new] = known.try_emplace(shape, bytes / (1 + error), bytes / (1 - error));
    if (is_new) continue;
    between->second.first = std::max(between->second.first, bytes / (1 + error));
    between->second.second = std::min(between->second.second, bytes / (1 - error));
  }
  if (known.empty()) return std::nullopt;
  // In units in which the largest point has all ones, so that corners are well told.
  double tokens = 1, squares = 1, bytes = 1;
  const auto terms = [](const std::pair<std::int64_t, std::int64_t>& shape) {
    const double rows = static_cast<double>(shape.first) * static_cast<double>(shape.second);
    return std::pair(rows, rows * static_cast<double>(shape.second));
  };
  for (const auto& [shape, between] : known) {
    tokens = std::max(tokens, terms(shape).first);
    squares = std::max(squares, terms(shape).second);
    bytes = std::max(bytes, between.second);
  }
  const auto scaled = [&](const std::pair<std::int64_t, std::int64_t>& shape) {
    return Eigen::Vector3d(1, terms(shape).first / tokens, terms(shape).second / squares);
  };
  std::vector<HalfSpace> sides = {
      {-Eigen::Vector3d::UnitX(), 0}, {-Eigen::Vector3d::UnitY(), 0}, {-Eigen::Vector3d::UnitZ(), 0}};
  for (const auto& [shape, between] : known) {
    sides.push_back({scaled(shape), between.second / bytes});
    sides.push_back({-scaled(shape), -between.first / bytes});
  }
  const Eigen::Vector3d asked = scaled({batch, length}).cwiseProduct(Eigen::Vector3d(1, linear_factor, 1));
  const std::optional<double> largest = largest_at_corner(sides, asked);
  if (!largest) return std::nullopt;
  return *largest * bytes * (1 + error);
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
