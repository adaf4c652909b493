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

/// A sample's place in a task's global batch.
struct SamplePlace {
  planner::TaskIndex task = 0;
  std::int64_t global_batch = 0;
  std::int32_t index = 0;
  auto operator<=>(const SamplePlace&) const = default;
};

/// Rows [first, first + count) of a microbatch: tokens [begin, begin + tokens) of a sample, and padding after them.
struct SampleRows {
  SamplePlace sample;
  std::int64_t begin = 0;
  std::int64_t tokens = 0;
  std::int64_t first = 0;
  std::int64_t count = 0;
  bool continues = false;  ///< a later chunk of the sample reads its keys and values
};

/// A microbatch as rows: one a token, samples end to end, padding rows after their sample's tokens.
struct Batch {
  std::vector<std::int32_t> tokens;     ///< [T]; 0 on padding
  std::vector<std::int32_t> positions;  ///< [T], counted from each sample's first token
  /// [T], for rotation and learned positions: positions after the virtual tokens of the task's prefix.
  std::vector<std::int32_t> places;
  std::vector<std::int64_t> samples;  ///< [T], the row's sample number
  std::vector<SampleRows> sequences;
  std::vector<TaskSpan> tasks;

  /// Rows whose next token is predicted with a loss: where, which token, and whose.
  std::vector<std::int64_t> scored_rows;
  std::vector<std::int32_t> scored_labels;
  std::vector<planner::TaskIndex> scored_tasks;

  std::int64_t rows() const { return static_cast<std::int64_t>(tokens.size()); }
};

/// Lays out a microbatch; `datasets` are the tasks'.
Batch make_batch(const planner::Microbatch& microbatch, std::span<const workload::Dataset> datasets);

}  // namespace braid::exec
