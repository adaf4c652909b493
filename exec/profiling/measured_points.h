#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "costmodel/work/operators.h"
#include "exec/batch.h"

namespace braid::exec {

/// Microbatches whose passes are measured: they go forward one after another and back in reverse. Only their sizes
/// count: whose rows they hold, how long their segments are, and how many rows have a loss.
struct MeasuredPoint {
  std::vector<planner::Microbatch> microbatches;
  std::int32_t tp = 1;      ///< of so many shards one computes them, without the sums in which shards meet
  std::int32_t layers = 0;  ///< of the backbone, from the bottom, that they go through; 0: as many as a rank has
  bool attends = false;     ///< all sequences are alike, so that attention's time tells that of each
  bool needed = false;      ///< measured even where the budget is spent, as nothing else tells of its operators
  bool operator==(const MeasuredPoint&) const = default;

  std::int64_t tokens() const;  ///< computed
};

/// `tokens` of one task in sequences of `context` tokens, the last of which may be shorter: one microbatch, or one for
/// each of the chunks of `chunk` tokens that the sequences are cut into (0: they are not). The last `scored` rows of
/// the microbatches, at most all that have a next token, have a loss.
MeasuredPoint uniform_point(planner::TaskIndex task, std::int64_t tokens, std::int64_t context, std::int64_t chunk,
                            std::int64_t scored);

/// A microbatch of such sizes as rows, of tokens drawn at random; of each segment the last `scored` rows have a loss.
Batch random_batch(const planner::Microbatch& microbatch, std::int64_t vocabulary);

/// What one Forward or Backward of each microbatch does in a shard of `stage`, of as many as the point has, with the
/// tasks' adapters.
std::vector<costmodel::OperatorCall> calls_of(const MeasuredPoint& point, const costmodel::BackboneShape& backbone,
                                              costmodel::StageShape stage,
                                              std::span<const costmodel::AdapterShape> adapters, costmodel::Pass pass,
                                              const costmodel::Storage& storage);

/// For the other ranks of one machine.
std::string to_bytes(std::span<const MeasuredPoint> points);
std::vector<MeasuredPoint> points_from_bytes(std::string_view bytes);

}  // namespace braid::exec
