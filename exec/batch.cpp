#include "exec/batch.h"

#include "base/error.h"

namespace braid::exec {
namespace {

/// Appends what the segment has of a sequence, of which `offset` tokens of the sample stand before it and which ends
/// at `last` of them.
void append(const planner::Segment& segment, const planner::SequencePart& part, const workload::Sample& sample,
            std::size_t offset, std::size_t last, Batch& batch) {
  const std::int64_t first = batch.rows();
  for (std::int32_t row = 0; row < part.end - part.begin + part.padding; ++row) {
    const std::int32_t position = part.begin + row;
    const bool real = position < part.end;
    const std::size_t place = offset + static_cast<std::size_t>(position);
    batch.tokens.push_back(real ? sample.tokens[place] : 0);
    batch.positions.push_back(position);
    batch.samples.push_back(segment.chosen > 0 ? 2 * segment.sample + part.sequence : segment.sample);
    // A chunk's last token predicts the first of the next.
    if (!real || place + 1 == last || sample.labels[place + 1] == workload::kUnsupervised) continue;
    batch.scored.push_back(
        {batch.rows() - 1, sample.labels[place + 1], sample.weight(place + 1), batch.sequences.size()});
  }
  batch.sequences.push_back({{segment.task, segment.global_batch, segment.index, part.sequence},
                             segment.sample,
                             part.begin,
                             part.end - part.begin,
                             first,
                             batch.rows() - first,
                             part.continues});
}

}  // namespace

Batch make_batch(const planner::Microbatch& microbatch, std::span<const workload::Dataset> datasets) {
  Batch batch;
  for (const planner::Segment& segment : microbatch.segments) {
    const workload::Sample& sample =
        datasets[static_cast<std::size_t>(segment.task)].samples.at(static_cast<std::size_t>(segment.sample));
    const auto length = static_cast<std::int32_t>(sample.tokens.size());
    BRAID_CHECK(0 <= segment.begin && segment.begin <= segment.end && segment.end <= length,
                "tokens [{}, {}) of a sample of {}", segment.begin, segment.end, length);
    BRAID_CHECK(segment.chosen == sample.chosen, "a pair of {} chosen tokens, and of {}", segment.chosen,
                sample.chosen);
    const std::int64_t first = batch.rows();
    if (batch.tasks.empty() || batch.tasks.back().task != segment.task)
      batch.tasks.push_back({segment.task, segment.global_batch, first, first});
    planner::for_each_sequence(segment, [&](const planner::SequencePart& part) {
      const auto border = static_cast<std::size_t>(segment.chosen);
      const bool ends = border == 0 || part.sequence == 1;
      append(segment, part, sample, part.sequence == 1 ? border : 0, ends ? sample.tokens.size() : border, batch);
    });
    batch.tasks.back().last = batch.rows();
  }
  return batch;
}

}  // namespace braid::exec
