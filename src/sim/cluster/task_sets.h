#pragma once

#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "sim/cluster/job.h"

namespace braid::sim {

/// A set of tasks that an instance runs together: how many of each kind. Place in TaskSets.
using SetIndex = std::int32_t;

/// How fast an instance runs a set of tasks: all of them take a step in the same time.
struct SetRate {
  double step_seconds = 0;
  std::int32_t layout = 0;  ///< layers lie as in other sets of this number
};

/// The sets of tasks that instances have run so far, each estimated once.
class TaskSets {
 public:
  static constexpr SetIndex kEmpty = 0;
  static constexpr SetIndex kNone = -1;

  /// Tasks of each kind in, rate out; nothing where they do not fit memory.
  using Estimate = std::function<std::optional<SetRate>(const std::vector<std::int32_t>& counts)>;
  struct Limits {
    std::int32_t most_tasks = 1;
    /// Of a task's step among others over its step alone.
    double most_slowdown = std::numeric_limits<double>::infinity();
  };

  /// `step_tokens`: billed for a step of a task, per kind.
  TaskSets(std::vector<double> step_tokens, const Limits& limits, Estimate estimate);

  std::int32_t kinds() const { return static_cast<std::int32_t>(step_tokens_.size()); }
  bool shares() const { return limits_.most_tasks > 1; }

  /// The set with one task more; kNone where memory or the limits forbid it.
  SetIndex with(SetIndex set, KindIndex kind);
  /// The set with one task less, of a kind that it has. A part of what fits does, too, whatever the limits say.
  SetIndex without(SetIndex set, KindIndex kind);

  std::int32_t tasks(SetIndex set) const { return at(set).tasks; }
  const std::vector<std::int32_t>& counts(SetIndex set) const { return at(set).counts; }
  double step_seconds(SetIndex set) const { return at(set).rate.step_seconds; }
  std::int32_t layout(SetIndex set) const { return at(set).rate.layout; }
  double tokens_per_second(SetIndex set) const { return at(set).tokens_per_second; }
  double step_tokens(KindIndex kind) const { return step_tokens_[static_cast<std::size_t>(kind)]; }
  /// The set of one task of this kind; kNone where not even that fits.
  SetIndex alone(KindIndex kind) { return with(kEmpty, kind); }

  /// How many tasks of a kind fit one instance.
  std::int32_t most_of(KindIndex kind);

  /// Sets seen so far, those that do not fit among them.
  std::size_t size() const { return by_counts_.size(); }

 private:
  static constexpr SetIndex kUnknown = -2;

  struct Set {
    std::vector<std::int32_t> counts;
    std::int32_t tasks = 0;
    SetRate rate;
    double tokens_per_second = 0;
    std::vector<SetIndex> with, without;  // per kind
  };

  const Set& at(SetIndex set) const { return sets_[static_cast<std::size_t>(set)]; }
  SetIndex find(const std::vector<std::int32_t>& counts);
  SetIndex add(const std::vector<std::int32_t>& counts, SetRate rate);
  bool too_slow(SetIndex set);

  std::vector<double> step_tokens_;
  Limits limits_;
  Estimate estimate_;
  std::vector<Set> sets_;
  std::map<std::vector<std::int32_t>, SetIndex> by_counts_;
  std::vector<std::int32_t> most_of_;  // per kind; 0: not known yet
};

/// Of jobs that run as long as they were recorded to, each by itself: a step takes a second.
TaskSets exclusive_sets();

}  // namespace braid::sim
