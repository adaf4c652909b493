#pragma once

#include <map>
#include <unordered_map>

#include "costmodel/profile/cost_model.h"

namespace braid::costmodel {

/// What a Forward or Backward of a stage costs, remembered: planners ask the same questions many times over. Not for
/// concurrent use; the cost model and the backbone must outlive it.
class StageLatency {
 public:
  StageLatency(const CostModel& cost, const BackboneShape& backbone) : cost_(cost), backbone_(backbone) {}

  const CostModel& cost() const { return cost_; }
  const BackboneShape& backbone() const { return backbone_; }
  /// Compute alone; collectives are instructions of their own.
  Estimate estimate(const StageShape& stage, const MicrobatchLoad& load, Pass pass);

 private:
  struct Question {
    StageShape stage;
    Pass pass = Pass::forward;
    MicrobatchLoad load;
    bool operator==(const Question&) const = default;
  };

  const CostModel& cost_;
  const BackboneShape& backbone_;
  /// Of all but the head, which alone may depend on how many rows have a loss.
  const PassWork& below_head(const StageShape& stage, const MicrobatchLoad& load, Pass pass);
  const PassWork& head(std::int64_t tp, std::int64_t rows);

  /// By hash, so that a question is only copied when it is new.
  std::unordered_multimap<std::size_t, std::pair<Question, PassWork>> known_;
  std::map<std::pair<std::int64_t, std::int64_t>, PassWork> heads_;  // by tp and rows
};

}  // namespace braid::costmodel
