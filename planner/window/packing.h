#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "planner/program/program.h"
#include "workload/sample_index.h"

// Samples end to end in packs: the first step of MuxTune's data alignment (§3.5).
namespace braid::planner {

/// A sample as a row: its tokens, then padding.
struct SampleRow {
  TaskIndex task = 0;
  std::int64_t global_batch = 0;
  std::int32_t index = 0;   ///< the sample's place in its global batch
  std::int64_t sample = 0;  ///< its number in the dataset
  std::int32_t tokens = 0;
  std::int32_t padded = 0;  ///< tokens and padding
  /// Tokens whose prediction has a loss: taken to be the last ones but for the very last, which predicts nothing. Where
  /// they lie elsewhere (chats of several turns), only the sum over a sample's segments is right.
  std::int32_t scored = 0;
  std::int32_t chosen = 0;  ///< as Segment has it
};

/// The samples of a global batch, in order, each padded to `length` tokens unless it has more; 0: no padding.
std::vector<SampleRow> rows_of(TaskIndex task, std::int64_t global_batch, std::span<const workload::SampleRef> samples,
                               std::int64_t length);

/// Rows of one task's global batch, end to end.
struct Pack {
  TaskIndex task = 0;
  std::vector<SampleRow> rows;  ///< in the order of the data
  std::int64_t tokens = 0;      ///< of the rows with their padding
};

/// Packs the rows of one task's global batch; no pack is longer than `pack_length` tokens and no row spans two.
///
/// First fit in the order of the data; first fit decreasing where that saves a pack. So there are at most (11 · fewest
/// + 6) / 9 packs (Dósa 2007), and no two of them would fit into one. Rows keep their order inside a pack, packs stand
/// by their first row. Throws Error when a row is longer than a pack. Cost: O(rows × packs), O(rows) where all are
/// equally long.
std::vector<Pack> pack_samples(std::span<const SampleRow> rows, std::int64_t pack_length);

}  // namespace braid::planner
