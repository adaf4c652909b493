#pragma once

#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "sim/cluster/job.h"

namespace braid::sim {

/// A set of tasks that an instance runs together: how many of each kind, on how many GPUs. Place in TaskSets.
using SetIndex = std::int32_t;

/// How fast an instance runs a set of tasks: all of them take a step in the same time.
struct SetRate {
  double step_seconds = 0;
  std::int32_t layout = 0;      ///< layers lie as in other sets of this number
  double busy_gpu_seconds = 0;  ///< of a step, computing, over all GPUs
};

/// The sets of tasks that instances have run so far, each estimated once.
class TaskSets {
 public:
  static constexpr SetIndex kNone = -1;
  static constexpr std::int32_t kAnyGpus = 0;

  /// Tasks of each kind and GPUs in, rate out; nothing where they do not fit memory.
  using Estimate = std::function<std::optional<SetRate>(const std::vector<std::int32_t>& counts, std::int32_t gpus)>;
  struct Limits {
    std::int32_t most_tasks = 1;
    /// Of a task's step among others over its step alone.
    double most_slowdown = std::numeric_limits<double>::infinity();
  };

  /// `step_tokens`: billed for a step of a task, per kind. `sizes`: the GPUs that instances may have, ascending; with
  /// kAnyGpus alone they have as many as a job asks for, and it makes no difference.
  TaskSets(std::vector<double> step_tokens, const Limits& limits, Estimate estimate,
           std::vector<std::int32_t> sizes = {kAnyGpus});

  std::int32_t kinds() const { return static_cast<std::int32_t>(step_tokens_.size()); }
  bool shares() const { return limits_.most_tasks > 1; }
  const std::vector<std::int32_t>& sizes() const { return sizes_; }

  /// No task, on an instance of so many GPUs, which must be one of the sizes.
  SetIndex empty(std::int64_t gpus) const;
  /// The set with one task more; kNone where memory or the limits forbid it.
  SetIndex with(SetIndex set, KindIndex kind) { return with(set, kind, at(set).size); }
  /// The same on another number of GPUs.
  SetIndex with_on(SetIndex set, KindIndex kind, std::int64_t gpus) { return with(set, kind, size_of(gpus)); }
  /// The set with one task less, of a kind that it has. A part of what fits does, too, whatever the limits say.
  SetIndex without(SetIndex set, KindIndex kind);

  /// Not where nothing was found that fits: its rate is that of a larger set.
  bool is_estimated(SetIndex set) const { return at(set).is_estimated; }
  std::int32_t tasks(SetIndex set) const { return at(set).tasks; }
  /// kAnyGpus where that is all there is.
  std::int32_t gpus(SetIndex set) const { return sizes_[at(set).size]; }
  const std::vector<std::int32_t>& counts(SetIndex set) const { return at(set).counts; }
  double step_seconds(SetIndex set) const { return at(set).rate.step_seconds; }
  double busy_gpu_seconds(SetIndex set) const { return at(set).rate.busy_gpu_seconds; }
  std::int32_t layout(SetIndex set) const { return at(set).rate.layout; }
  double tokens_per_second(SetIndex set) const { return at(set).tokens_per_second; }
  double step_tokens(KindIndex kind) const { return step_tokens_[static_cast<std::size_t>(kind)]; }
  /// The set of one task of this kind; kNone where not even that fits.
  SetIndex alone(KindIndex kind, std::int64_t gpus) { return with(empty(gpus), kind); }

  /// How many tasks of a kind fit one instance of so many GPUs.
  std::int32_t most_of(KindIndex kind, std::int64_t gpus);

  /// Sets seen so far, those that do not fit among them.
  std::size_t size() const { return known_.size(); }

 private:
  static constexpr SetIndex kUnknown = -2;

  struct Set {
    std::vector<std::int32_t> counts;
    std::size_t size = 0;  // place in sizes_
    std::int32_t tasks = 0;
    SetRate rate;
    bool is_estimated = true;
    double tokens_per_second = 0;
    std::vector<SetIndex> with, without;  // per kind, on as many GPUs
  };
  using Key = std::pair<std::vector<std::int32_t>, std::size_t>;  // counts, size

  const Set& at(SetIndex set) const { return sets_[static_cast<std::size_t>(set)]; }
  std::size_t size_of(std::int64_t gpus) const;
  SetIndex with(SetIndex set, KindIndex kind, std::size_t size);
  SetIndex find(const Key& key);
  SetIndex add(const Key& key, SetRate rate);
  bool too_slow(SetIndex set);

  std::vector<double> step_tokens_;
  Limits limits_;
  Estimate estimate_;
  std::vector<std::int32_t> sizes_;
  std::vector<Set> sets_;  // the first are the empty ones, by size
  std::map<Key, SetIndex> known_;
  std::vector<std::int32_t> most_of_;  // per kind, on the GPUs asked for first; 0: not known yet
};

/// Of jobs that run as long as they were recorded to, each by itself: a step takes a second.
TaskSets exclusive_sets();

}  // namespace braid::sim
