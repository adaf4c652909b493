#include "cli/support/change_cost.h"

namespace braid::cli {
namespace {

/// Before anything was kept: of a common disk.
constexpr double kSecondsAByte = 1 / 400e6;

double rate(double seconds, Bytes bytes) {
  return bytes > 0 ? seconds / static_cast<double>(bytes) : kSecondsAByte;
}

}  // namespace

ChangeCost predict_cost(const planner::PlanChange& change, const ChangeRates& rates) {
  // Of each task that stays, and the list of them.
  const double files = rates.file_seconds * static_cast<double>(change.stay + 1);
  const double state = files + 2 * static_cast<double>(change.adapters) * rate(rates.state_seconds, rates.state_bytes);
  const double load = static_cast<double>(change.most_loaded) * rate(rates.load_seconds, rates.load_bytes);
  return {state + load + rates.other_seconds, state + load, 0};
}

}  // namespace braid::cli
