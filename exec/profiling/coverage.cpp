#include "exec/profiling/coverage.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace braid::exec {
namespace {

using costmodel::Operator;
using costmodel::OperatorCall;

/// Ratios: of work that is as good as measured, of neighbours between which a straight line is, and of work past the
/// last point of which that tells little more.
constexpr double kAlike = 1.03, kNear = 1.5, kFar = 1.6;
/// Between neighbours ever so far apart a line still says more than nothing does.
constexpr double kMostBetween = 0.5;

double work_of(Operator op, std::int64_t tokens, std::int64_t context, std::int64_t prefix) {
  const std::int64_t work = op != Operator::attention ? tokens : prefix > 0 ? prefix : context;
  return std::log(static_cast<double>(std::max<std::int64_t>(work, 1)));
}

}  // namespace

Coverage::Key Coverage::key_of(Operator op, costmodel::Pass pass, const costmodel::OperatorShape& shape,
                               std::int64_t context, std::int64_t prefix) {
  return {op, pass, shape, op == Operator::attention && prefix > 0 ? context - prefix : 0};
}

Coverage::Coverage(const costmodel::Profile& profile) {
  for (const costmodel::ProfileEntry& entry : profile.entries)
    points_[key_of(entry.op, entry.pass, entry.shape, entry.context, entry.prefix)].insert(
        work_of(entry.op, entry.tokens, entry.context, entry.prefix));
}

void Coverage::add(const OperatorCall& call) {
  points_[key_of(call.op, call.pass, call.shape, call.context, call.prefix)].insert(
      work_of(call.op, call.tokens, call.context, call.prefix));
}

double Coverage::distance(const OperatorCall& call) const {
  const auto found = points_.find(key_of(call.op, call.pass, call.shape, call.context, call.prefix));
  if (found == points_.end()) return 1;
  const std::set<double>& points = found->second;
  const double work = work_of(call.op, call.tokens, call.context, call.prefix);
  const auto above = points.lower_bound(work);
  constexpr double kNowhere = std::numeric_limits<double>::infinity();
  const double up = above == points.end() ? kNowhere : *above - work;
  const double down = above == points.begin() ? kNowhere : work - *std::prev(above);
  const double nearest = std::min(up, down);
  if (nearest <= std::log(kAlike)) return 0;
  if (up + down < kNowhere) return std::clamp((up + down - std::log(kNear)) / std::log(4.0), 0.0, kMostBetween);
  return std::min(1.0, nearest / std::log(kFar));
}

}  // namespace braid::exec
