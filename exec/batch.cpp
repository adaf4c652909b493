#include "exec/batch.h"

#include "base/error.h"

namespace braid::exec {

Batch make_batch(const planner::Microbatch& microbatch, std::span<const workload::Dataset> datasets) {
  Batch batch;
  for (const planner::Segment& segment : microbatch.segments) {
    const workload::Sample& sample =
        datasets[static_cast<std::size_t>(segment.task)].samples.at(static_cast<std::size_t>(segment.sample));
    const auto length = static_cast<std::int32_t>(sample.tokens.size());
    BRAID_CHECK(0 <= segment.begin && segment.begin <= segment.end && segment.end <= length,
                "tokens [{}, {}) of a sample of {}", segment.begin, segment.end, length);
    const std::int64_t first = batch.rows();
    if (batch.tasks.empty() || batch.tasks.back().task != segment.task)
      batch.tasks.push_back({segment.task, segment.global_batch, first, first});
    for (std::int32_t row = 0; row < segment.computed_tokens(); ++row) {
      const std::int32_t position = segment.begin + row;
      const bool real = position < segment.end;
      batch.tokens.push_back(real ? sample.tokens[static_cast<std::size_t>(position)] : 0);
      batch.positions.push_back(position);
      batch.samples.push_back(segment.sample);
      // A chunk's last token predicts the first of the next.
      if (!real || position + 1 == length) continue;
      const std::int32_t next = sample.labels[static_cast<std::size_t>(position) + 1];
      if (next == workload::kUnsupervised) continue;
      batch.scored_rows.push_back(batch.rows() - 1);
      batch.scored_labels.push_back(next);
      batch.scored_tasks.push_back(segment.task);
    }
    batch.sequences.push_back({{segment.task, segment.global_batch, segment.index},
                               segment.begin,
                               segment.tokens(),
                               first,
                               batch.rows() - first,
                               segment.continues});
    batch.tasks.back().last = batch.rows();
  }
  return batch;
}

}  // namespace braid::exec
