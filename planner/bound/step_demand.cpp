#include "planner/bound/step_demand.h"

#include <algorithm>
#include <limits>

#include "planner/window/predict.h"

namespace braid::planner {
namespace {

constexpr std::int64_t kAny = std::numeric_limits<std::int64_t>::max();

Extent smaller(const Extent& a, const Extent& b) {
  return {std::min(a.tokens, b.tokens), std::min(a.scored, b.scored), std::min(a.sequences, b.sequences)};
}

Extent larger(const Extent& a, const Extent& b) {
  return {std::max(a.tokens, b.tokens), std::max(a.scored, b.scored), std::max(a.sequences, b.sequences)};
}

}  // namespace

StepDemands::StepDemands(const BoundScope& scope, const WindowInput& input, bool scores_all)
    : scope_(scope), scores_all_(scores_all) {
  const bool cuts = scope.least_chunk > 0;
  const bool pads = scope.padding != Padding::none && !(cuts && scope.skips_padding);
  for (TaskIndex task = 0; task < static_cast<TaskIndex>(input.workload.tasks.size()); ++task) {
    if (input.stopped.contains(task)) continue;
    const std::int64_t max_length = input.workload.tasks[static_cast<std::size_t>(task)].max_length;
    tasks_.push_back(task);
    std::vector<std::vector<Row>>& batches = batches_.emplace_back();
    for (std::int64_t step = 0; step < kPredictedSteps; ++step) {
      std::vector<Row>& rows = batches.emplace_back();
      for (const workload::SampleRef& sample : input.samples.global_batch(task, step)) {
        const std::int64_t tokens = pads ? std::max(sample.tokens, max_length) : sample.tokens;
        // Of a row that is cut, padding may go through behind another row, where it attends to less.
        rows.push_back({tokens, cuts ? sample.tokens : tokens, scores_all ? tokens : sample.supervised});
      }
    }
  }
}

std::int64_t StepDemands::largest_batch() const {
  std::size_t most = 1;
  for (const auto& batches : batches_) {
    for (const std::vector<Row>& rows : batches) most = std::max(most, rows.size());
  }
  return static_cast<std::int64_t>(most);
}

/// Whole rows are split as align_padded does. Of rows that are cut a microbatch has a chunk of each at the most, so
/// that the longest goes through in so many microbatches as it has chunks, and one chunk at the least. Packs may bring
/// all rows in one microbatch, or any few.
StepDemand StepDemands::of(std::size_t place, std::int64_t microbatches) const {
  const bool cuts = scope_.least_chunk > 0;
  const std::int64_t chunk = cuts && scope_.most_chunk > 0 ? scope_.most_chunk : kAny;
  const std::int64_t parts =
      cuts || scope_.packs ? 1 : microbatches * static_cast<std::int64_t>(scope_.deployment.size());
  StepDemand demand;
  demand.least = {kAny, kAny, kAny};
  demand.shortest = kAny;
  constexpr double kShare = 1.0 / kPredictedSteps;
  for (const std::vector<Row>& rows : batches_[place]) {
    const auto count = static_cast<std::int64_t>(rows.size());
    for (std::int64_t part = 0; part < parts; ++part) {
      Extent size;
      std::int64_t tokens = 0, scored = 0, pieces = 1;
      for (std::int64_t i = part * count / parts; i < (part + 1) * count / parts; ++i) {
        const Row& row = rows[static_cast<std::size_t>(i)];
        tokens += row.tokens;
        size.tokens += std::min(row.tokens, chunk);
        if (cuts) pieces = std::max(pieces, (row.tokens - 1) / chunk + 1);
        scored += row.scored;
        size.scored += std::min(row.scored, chunk);
        ++size.sequences;
        demand.sequences[row.length] += kShare;
        demand.shortest = std::min(demand.shortest, row.length);
      }
      if (size.sequences == 0) continue;
      demand.tokens += kShare * static_cast<double>(tokens);
      demand.scored += kShare * static_cast<double>(scored);
      demand.microbatches += kShare * static_cast<double>(pieces);
      demand.scored_microbatches += kShare * static_cast<double>(scores_all_ ? pieces : scored > 0);
      demand.most = larger(demand.most, size);
      demand.least = smaller(demand.least, size);
    }
  }
  if (scope_.packs && !cuts) {
    // A microbatch may hold one row alone.
    for (const std::vector<Row>& rows : batches_[place]) {
      for (const Row& row : rows) demand.least = smaller(demand.least, {row.tokens, row.scored, 1});
    }
  }
  if (cuts) {
    demand.least = {scope_.least_chunk, 0, 0};
    demand.shortest = 0;
  }
  return demand;
}

}  // namespace braid::planner
