#include "costmodel/profile/least_squares.h"

#include <limits>
#include <vector>

#include <Eigen/QR>

#include "base/error.h"

namespace braid::costmodel {

Eigen::VectorXd non_negative_least_squares(const Eigen::MatrixXd& a, const Eigen::VectorXd& b) {
  const Eigen::Index unknowns = a.cols();
  constexpr Eigen::Index kMostUnknowns = 12;
  BRAID_CHECK(unknowns > 0 && unknowns <= kMostUnknowns && a.rows() == b.size(), "{} unknowns, {} rows, {} values",
              unknowns, a.rows(), b.size());
  if (a.rows() < unknowns)
    throw error("{} measured points are too few to fit {} coefficients; give more", a.rows(), unknowns);
  Eigen::VectorXd best = Eigen::VectorXd::Zero(unknowns);
  double least = b.squaredNorm();
  for (unsigned free = 1; free < 1U << static_cast<unsigned>(unknowns); ++free) {
    std::vector<Eigen::Index> columns;
    for (Eigen::Index i = 0; i < unknowns; ++i) {
      if ((free >> static_cast<unsigned>(i) & 1U) != 0) columns.push_back(i);
    }
    const Eigen::MatrixXd part = a(Eigen::all, columns);
    const Eigen::VectorXd solution = part.colPivHouseholderQr().solve(b);
    if (solution.minCoeff() < 0) continue;
    const double residual = (part * solution - b).squaredNorm();
    if (residual >= least) continue;
    least = residual;
    best.setZero();
    for (std::size_t i = 0; i < columns.size(); ++i) best[columns[i]] = solution[static_cast<Eigen::Index>(i)];
  }
  return best;
}

}  // namespace braid::costmodel
