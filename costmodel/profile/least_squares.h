#pragma once

#include <Eigen/Core>

namespace braid::costmodel {

/// The x >= 0 that makes |A x − b| least, exactly: the best of the solutions with each set of unknowns held at 0. For a
/// few unknowns; cost doubles with each. Throws Error when there are fewer rows than unknowns.
Eigen::VectorXd non_negative_least_squares(const Eigen::MatrixXd& a, const Eigen::VectorXd& b);

}  // namespace braid::costmodel
