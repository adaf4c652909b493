#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>

#include <rapidcheck.h>

#include "planner/window/alignment.h"

// hTasks in one step, aligned, for the tests of alignment.
namespace braid::planner::testing {

/// An hTask in one step, and how it is aligned.
struct Case {
  std::vector<std::vector<SampleRow>> tasks;
  std::vector<std::int64_t> max_lengths;
  std::int64_t chunk_size = 0;
  std::int64_t pack_length = 0;
  std::int64_t parts = 1;
  EmptyChunks empty = EmptyChunks::computed;

  std::int64_t longest() const { return *std::max_element(max_lengths.begin(), max_lengths.end()); }
  Alignment chunks() const { return align_chunks(tasks, pack_length, chunk_size, parts, empty); }
  std::vector<Pack> packs() const {
    std::vector<Pack> all;
    for (const auto& rows : tasks) {
      for (Pack& pack : pack_samples(rows, pack_length)) all.push_back(std::move(pack));
    }
    return all;
  }
};

inline std::vector<SampleRow> any_rows(TaskIndex task, std::int64_t max_length, bool padded) {
  const auto count = *rc::gen::inRange<std::size_t>(0, 9);
  std::vector<workload::SampleRef> samples;
  for (std::size_t i = 0; i < count; ++i) {
    const auto tokens = *rc::gen::inRange<std::int64_t>(1, max_length + 1);
    samples.push_back({*rc::gen::inRange<std::int64_t>(0, 1000), tokens, *rc::gen::inRange<std::int64_t>(0, tokens)});
  }
  return rows_of(task, 10 + task, samples, padded ? max_length : 0);
}

/// `unit`: what max_lengths are multiples of.
inline Case any_case(std::int64_t unit = 1) {
  Case made;
  const auto count = *rc::gen::inRange<TaskIndex>(1, 5);
  const bool padded = *rc::gen::arbitrary<bool>();
  for (TaskIndex task = 0; task < count; ++task) {
    made.max_lengths.push_back(*rc::gen::inRange<std::int64_t>(1, 160 / unit + 1) * unit);
    made.tasks.push_back(any_rows(task, made.max_lengths.back(), padded));
  }
  made.chunk_size = *rc::gen::inRange<std::int64_t>(1, 7) * kChunkUnit;
  made.pack_length = pack_length_for(made.max_lengths, made.chunk_size) + *rc::gen::inRange<std::int64_t>(0, 40);
  made.parts = *rc::gen::inRange<std::int64_t>(1, 6);
  made.empty = *rc::gen::element(EmptyChunks::computed, EmptyChunks::skipped);
  return made;
}

using SampleKey = std::pair<TaskIndex, std::int32_t>;

inline SampleKey key_of(const Segment& segment) {
  return {segment.task, segment.index};
}

inline void for_each_microbatch(const Alignment& alignment,
                                const std::function<void(const AlignedGroup&, const std::vector<Segment>&)>& look) {
  for (const AlignedGroup& group : alignment.groups) {
    for (const std::vector<Segment>& microbatch : group.chunks) look(group, microbatch);
  }
}

inline std::int64_t computed(const std::vector<Segment>& microbatch) {
  return std::accumulate(microbatch.begin(), microbatch.end(), std::int64_t{0},
                         [](std::int64_t sum, const Segment& segment) { return sum + segment.computed_tokens(); });
}

inline AlignmentTokens sums_of(const Case& made) {
  AlignmentTokens sums;
  for (const auto& rows : made.tasks) {
    for (const SampleRow& row : rows) {
      sums.data += row.tokens;
      sums.row_padding += row.padded - row.tokens;
    }
  }
  return sums;
}

/// Zero padding to the longest max_length of the hTask.
inline Alignment padded_to_longest(Case made) {
  for (auto& rows : made.tasks) {
    for (SampleRow& row : rows) row.padded = static_cast<std::int32_t>(made.longest());
  }
  return align_padded(made.tasks, made.parts);
}

}  // namespace braid::planner::testing
