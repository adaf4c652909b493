#include "planner/bound/best_rate.h"

#include <algorithm>
#include <limits>

#include "base/error.h"
#include "base/mixed_hash.h"

namespace braid::planner {

namespace {

/// The grid is of whole numbers: up to here each one.
constexpr std::int64_t kSteps = 64;

std::int64_t next_on_grid(std::int64_t units) {
  return units + std::max<std::int64_t>(1, units / kSteps);
}

}  // namespace

std::size_t BestRates::Hash::operator()(const Question& question) const {
  const costmodel::OperatorCall& call = question.call;
  MixedHash hash(static_cast<int>(call.op) * 32 + static_cast<int>(call.pass) * 8 +
                 static_cast<int>(question.unit) * 4 + static_cast<int>(question.weight));
  for (const std::int64_t number : call.shape) hash.add(number);
  return hash.add(call.context).value();
}

double BestRates::price(const Question& question, std::int64_t units) const {
  costmodel::OperatorCall call = question.call;
  (question.unit == Unit::tokens ? call.tokens : call.sequences) = units;
  const costmodel::CallPrice price = cost_.price(call);
  switch (question.weight) {
    case Weight::whole:
      return price.seconds;
    case Weight::utilized:
      return price.seconds * price.utilization;
    case Weight::products:
      return price.attention.product_seconds;
    case Weight::memory:
      return price.attention.memory_seconds;
  }
  BRAID_CHECK(false, "no such weight");
}

double BestRates::seconds(costmodel::OperatorCall call, Unit unit, std::int64_t most, Weight weight) {
  BRAID_CHECK(most > 0, "a batch of {}", most);
  call.count = 1;
  call.beside = false;
  (unit == Unit::tokens ? call.tokens : call.sequences) = 0;
  const Question question{call, unit, weight};
  std::vector<GridPoint>& grid = known_[question];
  if (grid.empty()) grid.push_back({1, price(question, 1), std::numeric_limits<double>::infinity()});
  for (std::int64_t next = 0; (next = next_on_grid(grid.back().units)) <= most;) {
    const GridPoint& last = grid.back();
    const double cell = last.seconds / static_cast<double>(next - 1);
    grid.push_back({next, price(question, next), std::min(last.least_before, cell)});
  }
  const GridPoint& last = *std::prev(std::upper_bound(
      grid.begin(), grid.end(), most, [](std::int64_t units, const GridPoint& point) { return units < point.units; }));
  return std::min(last.least_before, last.seconds / static_cast<double>(most));
}

}  // namespace braid::planner
