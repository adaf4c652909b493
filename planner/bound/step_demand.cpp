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

constexpr double kShare = 1.0 / kPredictedSteps;

}  // namespace

void StepDemands::Batch::add(const Row& row) {
  rows.push_back(row);
  tokens.push_back(tokens.back() + row.tokens);
  scored.push_back(scored.back() + row.scored);
  sequences.push_back(sequences.back() + (row.chosen > 0 ? 2 : 1));
  scored_rows += row.scored > 0;
}

Extent StepDemands::Batch::between(std::int64_t first, std::int64_t last) const {
  const auto from = static_cast<std::size_t>(first), to = static_cast<std::size_t>(last);
  return {tokens[to] - tokens[from], scored[to] - scored[from], sequences[to] - sequences[from]};
}

StepDemands::StepDemands(const BoundScope& scope, const WindowInput& input, bool scores_all)
    : scope_(scope), scores_all_(scores_all) {
  const bool cuts = scope.least_chunk > 0;
  const bool pads = scope.padding != Padding::none && !(cuts && scope.skips_padding);
  for (TaskIndex task = 0; task < static_cast<TaskIndex>(input.workload.tasks.size()); ++task) {
    if (input.stopped.contains(task)) continue;
    const std::int64_t sample_tokens = input.workload.tasks[static_cast<std::size_t>(task)].sample_tokens();
    tasks_.push_back(task);
    OfTask& of_task = of_tasks_.emplace_back();
    StepDemand& whole = of_task.whole;
    whole.shortest = kAny;
    for (std::int64_t step = 0; step < kPredictedSteps; ++step) {
      Batch& batch = of_task.batches.emplace_back();
      for (const workload::SampleRef& sample : input.samples.global_batch(task, step)) {
        const std::int64_t tokens = pads ? std::max(sample.tokens, sample_tokens) : sample.tokens;
        // Of a row that is cut, padding may go through behind another row, where it attends to less.
        batch.add({tokens, (cuts ? sample.tokens : tokens) - sample.chosen, scores_all ? tokens : sample.supervised,
                   sample.chosen});
        for (const std::int64_t length : {batch.rows.back().length, sample.chosen}) {
          if (length == 0) continue;
          whole.sequences[length] += kShare;
          whole.shortest = std::min(whole.shortest, length);
        }
      }
      whole.tokens += kShare * static_cast<double>(batch.tokens.back());
      whole.scored += kShare * static_cast<double>(batch.scored.back());
    }
  }
}

std::int64_t StepDemands::largest_batch() const {
  std::int64_t most = 1;
  for (const OfTask& of_task : of_tasks_) {
    for (const Batch& batch : of_task.batches) most = std::max(most, batch.count());
  }
  return most;
}

std::int64_t StepDemands::parts(std::int64_t microbatches) const {
  return microbatches * static_cast<std::int64_t>(scope_.deployment.size());
}

/// Whole rows are split as align_padded does.
StepDemand StepDemands::of(std::size_t place, std::int64_t microbatches) const {
  if (!splits()) return of_cut_or_packed(place);
  StepDemand demand = of_tasks_[place].whole;
  demand.least = {kAny, kAny, kAny};
  const std::int64_t all = parts(microbatches);
  for (const Batch& batch : of_tasks_[place].batches) {
    std::int64_t filled = 0, with_scored = 0;
    // Of more parts than rows those are empty that no row is in: each row is one by itself.
    const std::int64_t some = std::min(all, batch.count());
    for (std::int64_t part = 0; part < some; ++part) {
      const Extent size = batch.between(part * batch.count() / some, (part + 1) * batch.count() / some);
      ++filled;
      with_scored += size.scored > 0;
      demand.most = larger(demand.most, size);
      demand.least = smaller(demand.least, size);
    }
    demand.microbatches += kShare * static_cast<double>(filled);
    demand.scored_microbatches += kShare * static_cast<double>(scores_all_ ? filled : with_scored);
  }
  return demand;
}

/// Parts are rows that follow one another: no more of them than of the fewest parts, no fewer than of the most.
StepDemand StepDemands::within(std::size_t place, std::int64_t first, std::int64_t last) const {
  if (!splits()) return of_cut_or_packed(place);
  StepDemand demand = of_tasks_[place].whole;
  demand.least = {kAny, kAny, kAny};
  for (const Batch& batch : of_tasks_[place].batches) {
    const std::int64_t count = batch.count();
    if (count == 0) continue;
    const std::int64_t fewest = std::min(parts(first), count), longest = (count + fewest - 1) / fewest;
    const std::int64_t shortest = std::max<std::int64_t>(1, count / parts(last));
    for (std::int64_t row = 0; row + longest <= count; ++row)
      demand.most = larger(demand.most, batch.between(row, row + longest));
    for (std::int64_t row = 0; row + shortest <= count; ++row)
      demand.least = smaller(demand.least, batch.between(row, row + shortest));
    const std::int64_t with_scored = (batch.scored_rows + longest - 1) / longest;
    demand.microbatches += kShare * static_cast<double>(fewest);
    demand.scored_microbatches += kShare * static_cast<double>(scores_all_ ? fewest : with_scored);
  }
  return demand;
}

/// Of rows that are cut a microbatch has a chunk of each at the most, so that the longest goes through in so many
/// microbatches as it has chunks, and one chunk at the least. Packs may bring all rows in one microbatch, or any few.
StepDemand StepDemands::of_cut_or_packed(std::size_t place) const {
  const bool cuts = scope_.least_chunk > 0;
  const std::int64_t chunk = cuts && scope_.most_chunk > 0 ? scope_.most_chunk : kAny;
  StepDemand demand = of_tasks_[place].whole;
  demand.least = {kAny, kAny, kAny};
  for (const Batch& batch : of_tasks_[place].batches) {
    if (batch.count() == 0) continue;
    Extent size;
    std::int64_t pieces = 1;
    for (const Row& row : batch.rows) {
      size.tokens += std::min(row.tokens, chunk);
      if (cuts) pieces = std::max(pieces, (row.tokens - 1) / chunk + 1);
      size.scored += std::min(row.scored, chunk);
      size.sequences += row.chosen > 0 ? 2 : 1;
      // A microbatch may hold one row alone.
      if (!cuts) demand.least = smaller(demand.least, {row.tokens, row.scored, row.chosen > 0 ? 2 : 1});
    }
    demand.microbatches += kShare * static_cast<double>(pieces);
    demand.scored_microbatches += kShare * static_cast<double>(scores_all_ ? pieces : batch.scored.back() > 0);
    demand.most = larger(demand.most, size);
    demand.least = smaller(demand.least, size);
  }
  if (cuts) {
    demand.least = {scope_.least_chunk, 0, 0};
    demand.shortest = 0;
  }
  return demand;
}

}  // namespace braid::planner
