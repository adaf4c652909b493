#include "planner/latency/weight_gathers.h"

#include <algorithm>
#include <limits>

#include "base/error.h"
#include "costmodel/work/memory.h"

namespace braid::planner {

using costmodel::Operator;
using costmodel::Pass;

WeightGathers weight_gathers(const costmodel::StageShape& stage, std::span<const std::int32_t> ranks,
                             const costmodel::CostModel& cost, const costmodel::BackboneShape& backbone) {
  BRAID_CHECK(stage.has_embedding && stage.has_head && stage.tp == 1, "shares of a part of the backbone");
  if (ranks.size() < 2) return {};
  const costmodel::WeightUnits units = costmodel::weight_units(backbone, stage, cost.storage());
  // Where gathers were not measured, a sum of as many bytes stands in, which takes no less.
  const bool sums = !cost.storage().gathers_beside && !cost.measured(Operator::all_gather);
  const Operator op = sums ? Operator::all_reduce : Operator::all_gather;
  const costmodel::OperatorShape shape = cost.group_shape(op, ranks);
  const auto gather = [&](Bytes bytes) { return cost.estimate({op, Pass::forward, shape, bytes, 0, 0, 1}).seconds; };
  if (!cost.storage().gathers_beside) return {0, gather(units.layer), 0, std::numeric_limits<double>::infinity()};
  const double layer = gather(units.layer);
  return {gather(units.rest), layer, layer, cost.overlap_slowdown()};
}

double gathered_seconds(double computed, double head, std::int64_t layers, const WeightGathers& gathers, Pass pass) {
  const auto count = static_cast<double>(layers);
  const double layer = (computed - head) / count;
  const double rest = pass == Pass::forward ? gathers.rest : 0;
  const double beside = layer + (1 - 1 / gathers.slowdown) * gathers.layer;
  return rest + gathers.first + (count - 1) * std::max(beside, gathers.layer) + layer + head;
}

}  // namespace braid::planner
