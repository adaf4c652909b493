#pragma once

#include <set>
#include <vector>

#include "planner/bound/best_rate.h"
#include "planner/bound/step_demand.h"
#include "planner/latency/weight_gathers.h"

namespace braid::planner {

/// What the links of a deployment take at the least, in seconds. Replicas may lie over nodes in different ways; where
/// it is not said which one, the best of theirs counts.
class LinkBound {
 public:
  /// Like replicas; all must outlive this.
  LinkBound(const std::vector<ReplicaShape>& deployment, const costmodel::BackboneShape& backbone,
            const costmodel::CostModel& cost, BestRates& rates);

  /// Messages of `tokens` together from stage `link` to the next, none of them of more than `most`.
  double messages(std::size_t link, double tokens, std::int64_t most);
  double least_message(std::size_t link, std::int64_t tokens) const;

  /// Collectives of a stage's shards in a step's passes, none of them of more than `most`.
  double collectives(std::size_t stage, const costmodel::StageShape& shape, costmodel::Pass pass,
                     const StepDemand& demand, const Extent& most);
  /// And in one pass of some of the stage's layers.
  double least_collectives(std::size_t stage, const costmodel::StageShape& layers, costmodel::Pass pass,
                           const costmodel::MicrobatchLoad& load) const;

  /// One task's gradients of a stage's layers over all that hold them, a sum for each run of layers, as lowering has
  /// it.
  double gradient_sums(std::size_t stage, std::int64_t layer_parameters) const;

  /// Of the weights over all ranks, where replicas are of one stage and one shard.
  WeightGathers gathers() const;

 private:
  using Shapes = std::set<costmodel::OperatorShape>;

  std::vector<std::int32_t> ranks(std::size_t replica, std::size_t stage) const;
  std::vector<std::int32_t> holders(std::size_t stage) const;
  double once(costmodel::Operator op, const costmodel::OperatorShape& shape, Bytes bytes) const;
  double least_once(costmodel::Operator op, const Shapes& shapes, Bytes bytes) const;
  double least_rate(costmodel::OperatorCall call, const Shapes& shapes, Bytes most);
  std::vector<costmodel::OperatorCall> calls(const costmodel::StageShape& stage, costmodel::Pass pass,
                                             const costmodel::MicrobatchLoad& load) const;
  double in_any_batches(std::span<const costmodel::OperatorCall> of_one, const Shapes& shapes, double units,
                        std::int64_t most);

  const std::vector<ReplicaShape>& deployment_;
  const costmodel::BackboneShape& backbone_;
  const costmodel::CostModel& cost_;
  BestRates& rates_;
  Bytes bytes_a_token_ = 0;
  std::vector<Shapes> links_;                      // of messages from each stage to the next
  std::vector<Shapes> shards_;                     // of each stage's shards
  std::vector<costmodel::OperatorShape> holders_;  // of all that hold each stage's layers
};

}  // namespace braid::planner
