#include "planner/bound/link_bound.h"

#include <algorithm>
#include <array>
#include <limits>

#include "costmodel/work/memory.h"

namespace braid::planner {

using costmodel::Operator;
using costmodel::OperatorCall;
using costmodel::OperatorShape;
using costmodel::Pass;
using costmodel::StageShape;

LinkBound::LinkBound(const std::vector<ReplicaShape>& deployment, const costmodel::BackboneShape& backbone,
                     const costmodel::CostModel& cost, BestRates& rates)
    : deployment_(deployment),
      backbone_(backbone),
      cost_(cost),
      rates_(rates),
      bytes_a_token_(costmodel::message_bytes_per_token(backbone, cost.storage())) {
  const auto stages = static_cast<std::size_t>(deployment.front().stages());
  links_.resize(stages - 1);
  shards_.resize(stages);
  for (std::size_t s = 0; s < stages; ++s) {
    for (std::size_t replica = 0; replica < deployment.size(); ++replica) {
      shards_[s].insert(cost.group_shape(Operator::all_reduce, ranks(replica, s)));
      if (s + 1 == stages) continue;
      const std::array ends = {ranks(replica, s).front(), ranks(replica, s + 1).front()};
      links_[s].insert(cost.group_shape(Operator::send_recv, ends));
    }
    holders_.push_back(cost.group_shape(Operator::all_reduce, holders(s)));
  }
}

double LinkBound::messages(std::size_t link, double tokens, std::int64_t most) {
  return tokens * static_cast<double>(bytes_a_token_) *
         least_rate({Operator::send_recv}, links_[link], most * bytes_a_token_);
}

double LinkBound::least_message(std::size_t link, std::int64_t tokens) const {
  return least_once(Operator::send_recv, links_[link], tokens * bytes_a_token_);
}

double LinkBound::collectives(std::size_t stage, const StageShape& shape, Pass pass, const StepDemand& demand,
                              const Extent& most) {
  if (shape.tp == 1) return 0;
  costmodel::MicrobatchLoad one;
  one.tokens = one.scored = 1;
  StageShape below = shape, head = shape;
  below.has_head = false;
  head.layers = 0, head.has_embedding = false;
  double seconds = in_any_batches(calls(below, pass, one), shards_[stage], demand.tokens, most.tokens);
  if (most.scored > 0) seconds += in_any_batches(calls(head, pass, one), shards_[stage], demand.scored, most.scored);
  return seconds;
}

double LinkBound::least_collectives(std::size_t stage, const StageShape& layers, Pass pass,
                                    const costmodel::MicrobatchLoad& load) const {
  double seconds = 0;
  if (layers.tp == 1) return seconds;
  for (const OperatorCall& call : calls(layers, pass, load))
    seconds += call.count * least_once(call.op, shards_[stage], call.tokens);
  return seconds;
}

double LinkBound::gradient_sums(std::size_t stage, std::int64_t layer_parameters) const {
  double seconds = 0;
  const ReplicaShape& replica = deployment_.front();
  if (deployment_.size() == 1 && replica.tp == 1) return seconds;
  for (std::int32_t c = 0; c < replica.model_chunks; ++c) {
    const std::int64_t layers = replica.chunk(static_cast<std::int32_t>(stage), c).count();
    seconds +=
        once(Operator::all_reduce, holders_[stage], static_cast<Bytes>(sizeof(float)) * layers * layer_parameters);
  }
  return seconds;
}

WeightGathers LinkBound::gathers() const {
  const StageShape whole{deployment_.front().layers_of(0), true, true, deployment_.front().tp,
                         deployment_.front().sequence_parallel};
  return weight_gathers(whole, holders(0), cost_, backbone_);
}

std::vector<std::int32_t> LinkBound::ranks(std::size_t replica, std::size_t stage) const {
  const ReplicaShape& shape = deployment_.front();
  const auto first = static_cast<std::int32_t>(replica * static_cast<std::size_t>(shape.stages()) + stage) * shape.tp;
  std::vector<std::int32_t> ranks;
  for (std::int32_t t = 0; t < shape.tp; ++t) ranks.push_back(first + t);
  return ranks;
}

std::vector<std::int32_t> LinkBound::holders(std::size_t stage) const {
  std::vector<std::int32_t> holders;
  for (std::size_t replica = 0; replica < deployment_.size(); ++replica) {
    for (const std::int32_t rank : ranks(replica, stage)) holders.push_back(rank);
  }
  return holders;
}

double LinkBound::once(Operator op, const OperatorShape& shape, Bytes bytes) const {
  return bytes > 0 ? cost_.estimate({op, Pass::forward, shape, bytes}).seconds : 0;
}

double LinkBound::least_once(Operator op, const Shapes& shapes, Bytes bytes) const {
  double least = std::numeric_limits<double>::infinity();
  for (const OperatorShape& shape : shapes) least = std::min(least, once(op, shape, bytes));
  return least;
}

/// Seconds a byte.
double LinkBound::least_rate(OperatorCall call, const Shapes& shapes, Bytes most) {
  double least = std::numeric_limits<double>::infinity();
  for (const OperatorShape& shape : shapes) {
    call.shape = shape;
    least = std::min(least, rates_.seconds(call, BestRates::Unit::tokens, most));
  }
  return least;
}

/// Collectives of so many rows, or tokens, together: as many as of one, in passes of at most `most`.
double LinkBound::in_any_batches(std::span<const OperatorCall> of_one, const Shapes& shapes, double units,
                                 std::int64_t most) {
  double seconds = 0;
  for (const OperatorCall& call : of_one) {
    const Bytes bytes = call.tokens;
    seconds += call.count * units * static_cast<double>(bytes) * least_rate(call, shapes, most * bytes);
  }
  return seconds;
}

std::vector<OperatorCall> LinkBound::calls(const StageShape& stage, Pass pass,
                                           const costmodel::MicrobatchLoad& load) const {
  return stage_collectives(backbone_, stage, load, pass, cost_.storage());
}

}  // namespace braid::planner
