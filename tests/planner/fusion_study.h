#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/random.h"
#include "planner/muxtune/task_fusion.h"

// What fusing only neighbours costs, and what Eq. 6 as printed costs, over random task sets.
namespace braid::planner::testing {

/// Random task sets, on costs that saturate as a GPU does.
struct StudySetting {
  std::string name;
  std::uint64_t instances = 500;
  std::int32_t tasks = 8;
  std::int32_t stages = 4;
  std::int64_t microbatches = 8;
  double saturating_tokens = 1024;  ///< below these a pass through the backbone takes no less time
  double memory_tokens = 1e18;      ///< most tokens of an hTask of several tasks
  bool padded = false;              ///< every row of an hTask is as long as its longest
  bool mixed_lengths = false;       ///< rows of 64 to 512 tokens; else all 256
  bool by_length = false;           ///< neighbours are sorted by length, then tokens; else by tokens, as the paper does
};

/// A task's rows in one microbatch.
struct FusionTask {
  double rows = 0;
  double length = 0;
};

/// What hTasks of one task set cost; a set of tasks is a bit mask.
struct StudyInstance {
  StudySetting setting;
  std::vector<FusionTask> tasks;  ///< sorted

  double tokens(std::uint32_t set) const {
    double rows = 0, sum = 0, longest = 0;
    for (std::size_t k = 0; k < tasks.size(); ++k) {
      if ((set >> k & 1) == 0) continue;
      rows += tasks[k].rows;
      sum += tasks[k].rows * tasks[k].length;
      longest = std::max(longest, tasks[k].length);
    }
    return setting.padded ? rows * longest : sum;
  }
  /// Eq. 3 with a backbone that saturates and adapters that saturate sixteen times later and are fused; forward and
  /// backward. The last stage also holds the head.
  double stage_seconds(std::uint32_t set, std::int32_t stage) const {
    constexpr double kSecondsPerToken = 10e-6, kAdapterShare = 0.05, kLater = 16, kHead = 1.1;
    const double saturating = setting.saturating_tokens;
    const double backbone = std::max(saturating, tokens(set)) * kSecondsPerToken;
    double utilized = 0, slowest = 0;
    for (std::size_t k = 0; k < tasks.size(); ++k) {
      if ((set >> k & 1) == 0) continue;
      const double own = tasks[k].rows * tasks[k].length;
      const double alone = std::max(saturating, own) * kSecondsPerToken * kAdapterShare;
      utilized += std::min(1.0, own / (kLater * saturating)) * alone;
      slowest = std::max(slowest, alone);
    }
    return 2 * (backbone + std::max(utilized, slowest)) * (stage + 1 == setting.stages ? kHead : 1);
  }
  bool fits(std::uint32_t set) const { return std::has_single_bit(set) || tokens(set) <= setting.memory_tokens; }

  FusionProblem problem() const {
    const auto run = [](std::int32_t first, std::int32_t last) { return (2u << last) - (1u << first); };
    return {setting.tasks, setting.stages, setting.microbatches,
            [this, run](std::int32_t first, std::int32_t last, std::int32_t s) {
              return stage_seconds(run(first, last), s);
            },
            [this, run](std::int32_t first, std::int32_t last) { return fits(run(first, last)); }};
  }
};

inline StudyInstance study_instance(const StudySetting& setting, std::uint64_t number) {
  RandomStream random(mix_key({{0xf051u, number}}));
  StudyInstance instance{setting, {}};
  for (std::int32_t k = 0; k < setting.tasks; ++k) {
    const double length = setting.mixed_lengths ? std::exp2(6 + static_cast<double>(random.next_below(4))) : 256;
    instance.tasks.push_back({1 + static_cast<double>(random.next_below(8)), length});
  }
  const auto key = [&](const FusionTask& task) {
    return std::pair(setting.by_length ? task.length : 0, task.rows * task.length);
  };
  std::stable_sort(instance.tasks.begin(), instance.tasks.end(),
                   [&](const FusionTask& left, const FusionTask& right) { return key(left) < key(right); });
  return instance;
}

/// Scores of Eq. 6 with one pass an hTask, where the hTask of the smallest task counts as the first.
class SetScores {
 public:
  explicit SetScores(const StudyInstance& instance) : all_((1u << instance.tasks.size()) - 1) {
    for (std::uint32_t set = 0; set <= all_; ++set) {
      double before_last = 0, slowest = 0;
      for (std::int32_t s = 0; s < instance.setting.stages; ++s) {
        const double here = instance.stage_seconds(set, s);
        if (s + 1 < instance.setting.stages) before_last += here;
        slowest = std::max(slowest, here);
      }
      fits_.push_back(instance.fits(set));
      steady_.push_back(static_cast<double>(instance.setting.microbatches) * slowest);
      warm_.push_back(before_last);
    }
  }
  double of_runs(const std::vector<TaskRun>& runs) const {
    double seconds = 0;
    for (const TaskRun& run : runs) {
      const std::uint32_t set = (2u << run.last) - (1u << run.first);
      seconds += steady_[set] + (run.first == 0 ? warm_[set] : 0);
    }
    return seconds;
  }
  /// Over all partitions of all tasks, neighbours or not, by dynamic programming over subsets.
  double least() const {
    std::vector<double> best(fits_.size(), 0);
    for (std::uint32_t left = 1; left <= all_; ++left) {
      const std::uint32_t smallest = left & (~left + 1);
      best[left] = std::numeric_limits<double>::infinity();
      for (std::uint32_t set = left; set != 0; set = (set - 1) & left) {
        if ((set & smallest) == 0 || !fits_[set]) continue;
        best[left] = std::min(best[left], best[left & ~set] + steady_[set] + (smallest == 1 ? warm_[set] : 0));
      }
    }
    return best[all_];
  }

 private:
  std::uint32_t all_;
  std::vector<bool> fits_;
  std::vector<double> steady_, warm_;
};

/// Of F* = min over N. Excesses are relative: 0.01 is one percent more seconds.
struct StudyResult {
  StudySetting setting;
  double mean_contiguity = 0;  ///< what the best runs of neighbours exceed the best partition by
  double worst_contiguity = 0;
  double least_contiguity = 0;
  double contiguous_misses = 0;  ///< share of instances where neighbours are not best
  double literal_differs = 0;    ///< share of instances where Eq. 6 as printed chooses another partition
  double mean_literal = 0;       ///< what its choice exceeds the best runs by, scored by one pass an hTask
  double worst_literal = 0;
  double one_pass_htasks = 0;  ///< mean number chosen
  double literal_htasks = 0;
};

inline const FusedTasks& best_of(const std::vector<FusedTasks>& fused) {
  return *std::min_element(fused.begin(), fused.end(), [](const FusedTasks& left, const FusedTasks& right) {
    return left.seconds < right.seconds;
  });
}

/// Cost: O(instances 3^tasks).
inline StudyResult study(const StudySetting& setting) {
  StudyResult result{setting};
  const double share = 1.0 / static_cast<double>(setting.instances);
  for (std::uint64_t number = 0; number < setting.instances; ++number) {
    const StudyInstance instance = study_instance(setting, number);
    const SetScores scores(instance);
    const std::vector<FusedTasks> by_one_pass = fuse_tasks(instance.problem(), FusionIncrement::one_pass);
    const std::vector<FusedTasks> by_literal = fuse_tasks(instance.problem(), FusionIncrement::literal);
    const FusedTasks& one_pass = best_of(by_one_pass);
    const FusedTasks& literal = best_of(by_literal);
    const double contiguity = one_pass.seconds / scores.least() - 1;
    const double excess = scores.of_runs(literal.htasks) / one_pass.seconds - 1;
    result.mean_contiguity += contiguity * share;
    result.worst_contiguity = std::max(result.worst_contiguity, contiguity);
    result.least_contiguity = std::min(result.least_contiguity, contiguity);
    result.contiguous_misses += contiguity > 1e-9 ? share : 0;
    result.literal_differs += literal.htasks != one_pass.htasks ? share : 0;
    result.mean_literal += excess * share;
    result.worst_literal = std::max(result.worst_literal, excess);
    result.one_pass_htasks += static_cast<double>(one_pass.htasks.size()) * share;
    result.literal_htasks += static_cast<double>(literal.htasks.size()) * share;
  }
  return result;
}

inline std::vector<StudySetting> study_settings() {
  std::vector<StudySetting> settings;
  const auto add = [&](std::string name, bool mixed_lengths, bool padded, bool by_length, double memory_tokens) {
    StudySetting& setting = settings.emplace_back();
    setting.name = std::move(name);
    setting.mixed_lengths = mixed_lengths;
    setting.padded = padded;
    setting.by_length = by_length;
    setting.memory_tokens = memory_tokens;
  };
  const double tight = 4096, ample = 1e18;
  add("one length", false, false, false, ample);
  add("one length, 4096 tokens fit", false, false, false, tight);
  add("mixed lengths, no padding, 4096 tokens fit", true, false, false, tight);
  add("mixed lengths, padded", true, true, false, ample);
  add("mixed lengths, padded, 4096 tokens fit", true, true, false, tight);
  add("mixed lengths, padded, 4096 tokens fit, sorted by length", true, true, true, tight);
  return settings;
}

inline std::string describe(const StudyResult& result) {
  return fmt::format(
      "{}: neighbours exceed the best partition by {:.2f}% in the mean, {:.2f}% at worst, in {:.0f}% of task sets; "
      "Eq. 6 as printed chooses another partition in {:.0f}%, {:.2f}% slower in the mean, {:.2f}% at worst "
      "({:.1f} hTasks against {:.1f})",
      result.setting.name, 100 * result.mean_contiguity, 100 * result.worst_contiguity, 100 * result.contiguous_misses,
      100 * result.literal_differs, 100 * result.mean_literal, 100 * result.worst_literal, result.literal_htasks,
      result.one_pass_htasks);
}

}  // namespace braid::planner::testing
