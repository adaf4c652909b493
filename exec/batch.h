#pragma once

#include <compare>
#include <cstdint>
#include <span>
#include <vector>

#include "planner/program/program.h"
#include "workload/text/dataset.h"

namespace braid::exec {

/// Rows [first, last) of a microbatch, all of one task.
struct TaskSpan {
  planner::TaskIndex task = 0;
  std::int64_t global_batch = 0;
  std::int64_t first = 0;
  std::int64_t last = 0;
};

/// The place of a sample's sequence in a task's global batch.
struct SamplePlace {
  planner::TaskIndex task = 0;
  std::int64_t global_batch = 0;
  std::int32_t index = 0;
  std::int32_t sequence = 0;  ///< of a pair: 0 the chosen one, 1 the rejected one
  auto operator<=>(const SamplePlace&) const = default;
};

/// Rows [first, first + count) of a microbatch: tokens [begin, begin + tokens) of a sample's
/// sequence, and padding after them.
struct SampleRows {
  SamplePlace sample;
  std::int64_t number = 0;  ///< the sample's, in the dataset
  std::int64_t begin = 0;
  std::int64_t tokens = 0;
  std::int64_t first = 0;
  std::int64_t count = 0;
  bool continues = false;  ///< a later chunk of the sequence reads its keys and values
};

/// A row whose next token is predicted with a loss.
struct ScoredRow {
  std::int64_t row = 0;
  std::int32_t label = 0;
  float weight = 1;          ///< what its loss counts, below 0 too
  std::size_t sequence = 0;  ///< of Batch::sequences
};

/// A microbatch as rows: one a token, samples end to end, padding rows after their sample's tokens.
struct Batch {
  std::vector<std::int32_t> tokens;     ///< [T]; 0 on padding
  std::vector<std::int32_t> positions;  ///< [T], counted from each sequence's first token
  /// [T], for rotation and learned positions: positions after the virtual tokens of the task's prefix.
  std::vector<std::int32_t> places;
  std::vector<std::int64_t> samples;  ///< [T], a number that each of a task's sequences has of its own
  std::vector<SampleRows> sequences;
  std::vector<TaskSpan> tasks;

  std::vector<ScoredRow> scored;  ///< in order

  std::int64_t rows() const { return static_cast<std::int64_t>(tokens.size()); }
};

/// Lays out a microbatch; `datasets` are the tasks'.
Batch make_batch(const planner::Microbatch& microbatch, std::span<const workload::Dataset> datasets);

}  // namespace braid::exec
