#include "exec/batch.h"

#include "base/error.h"

namespace braid::exec {

Batch make_batch(const planner::Microbatch& microbatch, std::span<const workload::Dataset> datasets) {
  Batch batch;
  for (const planner::Segment& segment : microbatch.segments) {
    const workload::Sample& sample =
        datasets[static_cast<std::size_t>(segment.task)].samples.at(static_cast<std::size_t>(segment.sample));
    if (segment.begin != 0 || static_cast<std::size_t>(segment.end) != sample.tokens.size()) {
      throw error(
          "the plan cuts samples into chunks, which this build cannot execute; plan with longer chunks or without");
    }
    const std::int64_t first = batch.rows();
    if (batch.tasks.empty() || batch.tasks.back().task != segment.task)
      batch.tasks.push_back({segment.task, segment.global_batch, first, first});
    for (std::int32_t position = 0; position < segment.computed_tokens(); ++position) {
      const bool real = position < segment.end;
      batch.tokens.push_back(real ? sample.tokens[static_cast<std::size_t>(position)] : 0);
      batch.positions.push_back(position);
      batch.samples.push_back(segment.sample);
      if (position + 1 >= segment.end) continue;
      const std::int32_t next = sample.labels[static_cast<std::size_t>(position) + 1];
      if (next == workload::kUnsupervised) continue;
      batch.scored_rows.push_back(batch.rows() - 1);
      batch.scored_labels.push_back(next);
      batch.scored_tasks.push_back(segment.task);
    }
    batch.sequences.push_back({first, batch.rows() - first});
    batch.tasks.back().last = batch.rows();
  }
  return batch;
}

}  // namespace braid::exec
