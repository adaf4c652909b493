#pragma once

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "planner/pipeline_orders.h"

// The least makespan of small pipelines, by search over every schedule.
namespace braid::planner::testing {

/// Branch and bound over all semi-active schedules of jobs of one microbatch each: any order on any stage, stages free
/// to idle, messages that take no time, memory as limits say. Passes are placed in the order of their starts. Fit for
/// four jobs on three stages.
class OptimalPipeline {
 public:
  explicit OptimalPipeline(const PipelineInstance& instance)
      : instance_(instance), count_(static_cast<std::size_t>(instance.stages)) {}

  /// The least makespan that is below `bound`, or `bound` when there is none.
  Nanoseconds least_below(Nanoseconds bound) {
    best_ = bound;
    done_.assign(instance_.jobs.size(), 0);
    ready_.assign(instance_.jobs.size(), 0);
    free_at_.assign(count_, 0);
    held_.assign(count_, 0);
    visit(0, {-1, 0});
    return best_;
  }

 private:
  struct Pass {
    std::size_t job = 0, stage = 0;
    Nanoseconds start = 0, end = 0;
    Bytes stash = 0;  ///< what it adds to the stage
  };

  std::size_t stage_of(std::size_t pass) const { return pass < count_ ? pass : 2 * count_ - 1 - pass; }
  Nanoseconds duration(std::size_t job, std::size_t pass) const {
    const PipelineJob& given = instance_.jobs[job];
    return (pass < count_ ? given.forward : given.backward)[stage_of(pass)];
  }

  using Place = std::pair<Nanoseconds, std::size_t>;  ///< start, stage

  /// Passes whose inputs are there and that fit, none of which comes before `now`.
  std::vector<Pass> candidates(Place now) const {
    std::vector<Pass> result;
    for (std::size_t j = 0; j < done_.size(); ++j) {
      if (done_[j] == 2 * count_) continue;
      const std::size_t stage = stage_of(done_[j]);
      const Bytes stash = done_[j] < count_ ? instance_.jobs[j].stash[stage] : -instance_.jobs[j].stash[stage];
      const Bytes memory = instance_.memory.empty() ? 0 : instance_.memory[stage];
      if (memory > 0 && held_[stage] + stash > memory) continue;
      const Nanoseconds start = std::max(ready_[j], free_at_[stage]);
      if (Place(start, stage) > now) result.push_back({j, stage, start, start + duration(j, done_[j]), stash});
    }
    return result;
  }

  /// No schedule that goes on from here ends earlier: each job needs its own passes one after another, each stage all
  /// of its own.
  Nanoseconds bound() const {
    Nanoseconds least = 0;
    std::vector<Nanoseconds> work(count_, 0);
    std::vector<Nanoseconds> head(count_, std::numeric_limits<Nanoseconds>::max()), tail = head;
    for (std::size_t j = 0; j < done_.size(); ++j) {
      Nanoseconds chain = 0;
      for (std::size_t pass = 2 * count_; pass-- > done_[j];) {
        tail[stage_of(pass)] = std::min(tail[stage_of(pass)], chain);
        chain += duration(j, pass);
        work[stage_of(pass)] += duration(j, pass);
      }
      Nanoseconds from = ready_[j];
      least = std::max(least, from + chain);
      for (std::size_t pass = done_[j]; pass < 2 * count_; ++pass) {
        head[stage_of(pass)] = std::min(head[stage_of(pass)], from);
        from += duration(j, pass);
      }
    }
    for (std::size_t s = 0; s < count_; ++s) {
      if (work[s] > 0) least = std::max(least, std::max(free_at_[s], head[s]) + work[s] + tail[s]);
    }
    return least;
  }

  void visit(std::size_t placed, Place now) {
    if (bound() >= best_) return;
    if (placed == 2 * count_ * done_.size()) {
      best_ = *std::max_element(ready_.begin(), ready_.end());
      return;
    }
    std::vector<Pass> open = candidates(now);
    std::sort(open.begin(), open.end(),
              [](const Pass& a, const Pass& b) { return std::pair(a.start, b.stash) < std::pair(b.start, a.stash); });
    for (const Pass& pass : open) {
      // A backward that fits wholly before this pass may as well run: it only frees memory. So may a forward where
      // memory has no limit.
      const bool wasteful = std::any_of(open.begin(), open.end(), [&](const Pass& other) {
        const bool harmless = other.stash <= 0 || instance_.memory.empty() || instance_.memory[other.stage] == 0;
        return other.stage == pass.stage && harmless && other.end <= pass.start && other.job != pass.job;
      });
      if (wasteful) continue;
      const Nanoseconds ready = std::exchange(ready_[pass.job], pass.end);
      const Nanoseconds free_at = std::exchange(free_at_[pass.stage], pass.end);
      held_[pass.stage] += pass.stash;
      ++done_[pass.job];
      visit(placed + 1, {pass.start, pass.stage});
      --done_[pass.job];
      held_[pass.stage] -= pass.stash;
      free_at_[pass.stage] = free_at;
      ready_[pass.job] = ready;
    }
  }

  const PipelineInstance& instance_;
  std::size_t count_;
  Nanoseconds best_ = 0;
  std::vector<std::size_t> done_;   ///< by job: passes placed
  std::vector<Nanoseconds> ready_;  ///< by job: when its last placed pass ends
  std::vector<Nanoseconds> free_at_;
  std::vector<Bytes> held_;
};

}  // namespace braid::planner::testing
