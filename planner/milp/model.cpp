#include "planner/milp/model.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace braid::planner::milp {
namespace {

constexpr double kTolerance = 1e-6;

bool within(double value, double low, double high) {
  const double slack = kTolerance * std::max(1.0, std::abs(value));
  return value >= low - slack && value <= high + slack;
}

}  // namespace

std::int32_t Model::add(Variable variable) {
  variables_.push_back(std::move(variable));
  return static_cast<std::int32_t>(variables_.size()) - 1;
}

void Model::add(Row row) {
  for (const Term& term : row.terms)
    BRAID_CHECK(term.variable >= 0 && static_cast<std::size_t>(term.variable) < variables_.size(),
                "row {} has variable {} of {}", row.name, term.variable, variables_.size());
  rows_.push_back(std::move(row));
}

double Model::cost_of(std::span<const double> values) const {
  double cost = 0;
  for (std::size_t v = 0; v < variables_.size(); ++v) cost += variables_[v].cost * values[v];
  return cost;
}

bool Model::holds(std::span<const double> values) const {
  if (values.size() != variables_.size()) return false;
  for (std::size_t v = 0; v < values.size(); ++v) {
    const Variable& variable = variables_[v];
    if (!std::isfinite(values[v]) || !within(values[v], variable.low, variable.high)) return false;
    if (variable.integer && std::abs(values[v] - std::round(values[v])) > kTolerance) return false;
  }
  return std::all_of(rows_.begin(), rows_.end(), [&](const Row& row) {
    double sum = 0;
    for (const Term& term : row.terms) sum += term.coefficient * values[static_cast<std::size_t>(term.variable)];
    return within(sum, row.low, row.high);
  });
}

}  // namespace braid::planner::milp
