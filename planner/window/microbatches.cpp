#include "planner/window/microbatches.h"

#include <algorithm>

#include "planner/window/alignment.h"
#include "planner/window/dispatched.h"

namespace braid::planner {
namespace {

/// What a task's rows are padded to; 0: not at all.
std::int64_t row_length(const FixedPlan& fixed, const workload::Workload& workload, const std::vector<TaskIndex>& htask,
                        TaskIndex task) {
  if (fixed.batching.padding == Padding::none) return 0;
  std::int64_t length = workload.tasks[static_cast<std::size_t>(task)].sample_tokens();
  if (fixed.batching.padding == Padding::longest) {
    for (const TaskIndex other : htask)
      length = std::max(length, workload.tasks[static_cast<std::size_t>(other)].sample_tokens());
  }
  return length;
}

/// Without a chunk size whole packs, without a pack length rows.
Alignment align(const FixedPlan& fixed, const workload::Workload& workload, const std::vector<TaskIndex>& htask,
                HTaskRows rows) {
  const auto parts = fixed.batching.microbatches * static_cast<std::int64_t>(fixed.deployment.size());
  if (fixed.batching.chunk_size == 0)
    return fixed.batching.pack_length > 0 ? align_packed(rows, fixed.batching.pack_length, parts)
                                          : align_padded(rows, parts);
  std::vector<std::int64_t> lengths;
  for (const TaskIndex task : htask) lengths.push_back(workload.tasks[static_cast<std::size_t>(task)].sample_tokens());
  const std::int64_t pack_length =
      fixed.batching.pack_length > 0 ? fixed.batching.pack_length : pack_length_for(lengths, fixed.batching.chunk_size);
  return align_chunks(rows, pack_length, fixed.batching.chunk_size, parts,
                      fixed.batching.skips_padding ? EmptyChunks::skipped : EmptyChunks::computed);
}

std::vector<std::vector<SampleRow>> rows_of_steps(const FixedPlan& fixed, const WindowInput& input,
                                                  std::span<const WindowStep> steps) {
  const std::vector<TaskIndex>& htask = fixed.htasks[static_cast<std::size_t>(steps.front().htask)];
  std::vector<std::vector<SampleRow>> rows;
  for (const WindowStep& step : steps) {
    const std::int64_t drawn = input.endless() ? step.global_batch % input.cycle : step.global_batch;
    rows.push_back(rows_of(step.task, step.global_batch, input.samples.global_batch(step.task, drawn),
                           row_length(fixed, input.workload, htask, step.task)));
  }
  return rows;
}

Alignment align_steps(const FixedPlan& fixed, const WindowInput& input, std::span<const WindowStep> steps) {
  const std::vector<TaskIndex>& htask = fixed.htasks[static_cast<std::size_t>(steps.front().htask)];
  return align(fixed, input.workload, htask, rows_of_steps(fixed, input, steps));
}

}  // namespace

std::vector<std::vector<ChunkGroup>> chunk_groups(const FixedPlan& fixed, const WindowInput& input,
                                                  std::span<const WindowStep> steps, MicrobatchId& next_id) {
  const auto replicas = static_cast<std::int64_t>(fixed.deployment.size());
  std::vector<std::vector<ChunkGroup>> groups(fixed.deployment.size());
  if (fixed.dispatch) {
    for (DispatchedMicrobatch& one : dispatch_rows(fixed, rows_of_steps(fixed, input, steps), input.workload))
      groups[static_cast<std::size_t>(one.replica)].push_back({{next_id++, one.replica, std::move(one.segments)}});
    return groups;
  }
  for (AlignedGroup& aligned : align_steps(fixed, input, steps).groups) {
    const std::int64_t replica = aligned.part % replicas;
    ChunkGroup& group = groups[static_cast<std::size_t>(replica)].emplace_back();
    for (std::vector<Segment>& segments : aligned.chunks)
      group.push_back({next_id++, static_cast<std::int32_t>(replica), std::move(segments)});
  }
  return groups;
}

AlignmentTokens first_step_tokens(const FixedPlan& fixed, const WindowInput& input) {
  AlignmentTokens total;
  for (std::size_t h = 0; h < fixed.htasks.size(); ++h) {
    std::vector<WindowStep> steps;
    for (const TaskIndex task : fixed.htasks[h]) steps.push_back({0, static_cast<std::int32_t>(h), task, 0});
    const AlignmentTokens tokens = align_steps(fixed, input, steps).tokens;
    total.data += tokens.data;
    total.row_padding += tokens.row_padding;
    total.chunk_padding += tokens.chunk_padding;
    total.skipped_padding += tokens.skipped_padding;
  }
  return total;
}

}  // namespace braid::planner
