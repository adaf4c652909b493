#pragma once

#include <algorithm>
#include <optional>
#include <vector>

#include "planner/muxtune/pipeline_template.h"

// Pipelines of jobs seen from outside: when passes run, given each stage's order and nothing else.
namespace braid::planner::testing {

struct PipelineInstance {
  std::vector<PipelineJob> jobs;
  int stages = 1;
  std::vector<Bytes> memory;  ///< 0: no limit
  std::vector<Nanoseconds> messages;
};

inline PipelineSchedule schedule_of(const PipelineInstance& instance, const TemplateRules& rules) {
  return schedule_pipeline(instance.jobs, instance.stages, instance.memory, instance.messages, rules);
}

inline const PipelineJob& job_of(const PipelineInstance& instance, const PipelineSlot& slot) {
  return instance.jobs[static_cast<std::size_t>(slot.job)];
}

inline Nanoseconds end_of(const PipelineInstance& instance, const PipelineSlot& slot, std::size_t stage) {
  const PipelineJob& job = job_of(instance, slot);
  return slot.start + job.time(slot.pass, slot.chunk, stage);
}

/// How long the last stage waits between its first and its last pass.
inline Nanoseconds idle_of_last_stage(const PipelineInstance& instance, const PipelineSchedule& schedule) {
  const std::vector<PipelineSlot>& slots = schedule.stages.back();
  const auto last = static_cast<std::size_t>(instance.stages - 1);
  Nanoseconds idle = 0;
  for (std::size_t i = 1; i < slots.size(); ++i) idle += slots[i].start - end_of(instance, slots[i - 1], last);
  return idle;
}

using PipelineOrder = std::vector<std::vector<PipelineSlot>>;  ///< by stage; the starts are not looked at

/// When each pass starts at the earliest, and when its input comes, by stage and place in the stage's order.
struct DerivedTimes {
  std::vector<std::vector<Nanoseconds>> start, arrival;
  Nanoseconds makespan = 0;
};

/// Longest paths through the passes: each waits for the one before it on its stage and for its input, and messages of
/// one direction between two stages wait for one another. Nothing when passes wait in a circle. A last stage's
/// backward has its input when its forward ends.
inline std::optional<DerivedTimes> derive_times(const PipelineInstance& instance, const PipelineOrder& order) {
  const auto count = static_cast<std::size_t>(instance.stages);
  std::vector<std::size_t> first{0};
  for (const PipelineJob& job : instance.jobs) first.push_back(first.back() + static_cast<std::size_t>(job.chunks));
  constexpr Nanoseconds kUnknown = -1;
  const std::vector<Nanoseconds> unknown(first.back(), kUnknown);
  std::vector<std::vector<Nanoseconds>> activation(count, unknown), gradient(count, unknown);
  activation[0].assign(first.back(), 0);
  std::vector<Nanoseconds> up_free(count, 0), down_free(count, 0), free_at(count, 0);

  DerivedTimes times;
  times.start.resize(count);
  times.arrival.resize(count);
  for (bool moved = true; moved;) {
    moved = false;
    for (std::size_t s = 0; s < count; ++s) {
      while (times.start[s].size() < order[s].size()) {
        const PipelineSlot& slot = order[s][times.start[s].size()];
        const PipelineJob& job = instance.jobs[static_cast<std::size_t>(slot.job)];
        const std::size_t m = first[static_cast<std::size_t>(slot.job)] + static_cast<std::size_t>(slot.chunk);
        const bool forward = slot.pass == Kind::forward;
        const Nanoseconds arrival = (forward ? activation : gradient)[s][m];
        if (arrival == kUnknown) break;
        times.arrival[s].push_back(arrival);
        times.start[s].push_back(std::max(free_at[s], arrival));
        const Nanoseconds end = times.start[s].back() + job.time(slot.pass, slot.chunk, s);
        free_at[s] = end;
        const auto message = [&](std::size_t boundary) {
          return instance.messages.empty() ? 0 : instance.messages[boundary];
        };
        if (forward && s + 1 == count) {
          gradient[s][m] = end;
        } else if (forward) {
          activation[s + 1][m] = up_free[s] = std::max(up_free[s], end) + message(s);
        } else if (s > 0) {
          gradient[s - 1][m] = down_free[s] = std::max(down_free[s], end) + message(s - 1);
        }
        times.makespan = std::max(times.makespan, end);
        moved = true;
      }
    }
  }
  for (std::size_t s = 0; s < count; ++s) {
    if (times.start[s].size() < order[s].size()) return std::nullopt;
  }
  return times;
}

/// The most that a stage's stashes come to.
inline Bytes most_held(const PipelineInstance& instance, const std::vector<PipelineSlot>& order, std::size_t stage) {
  Bytes held = 0, most = 0;
  for (const PipelineSlot& slot : order) {
    const Bytes stash = instance.jobs[static_cast<std::size_t>(slot.job)].stash[stage];
    held += slot.pass == Kind::forward ? stash : -stash;
    most = std::max(most, held);
  }
  return most;
}

/// One forward, one backward as it is written down: a stage never goes backward before it is `stages - stage` jobs
/// ahead, even when it could. Jobs must be of one microbatch and enter in the order given.
inline PipelineOrder strict_1f1b(const PipelineInstance& instance) {
  PipelineOrder order(static_cast<std::size_t>(instance.stages));
  const auto count = static_cast<std::int32_t>(instance.jobs.size());
  for (int s = 0; s < instance.stages; ++s) {
    std::vector<PipelineSlot>& slots = order[static_cast<std::size_t>(s)];
    const std::int32_t ahead = std::min(instance.stages - s, count);
    for (std::int32_t j = 0; j < ahead; ++j) slots.push_back({Kind::forward, j, 0, 0});
    for (std::int32_t j = 0; j < count; ++j) {
      slots.push_back({Kind::backward, j, 0, 0});
      if (j + ahead < count) slots.push_back({Kind::forward, j + ahead, 0, 0});
    }
  }
  return order;
}

}  // namespace braid::planner::testing
