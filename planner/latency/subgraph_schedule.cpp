#include "planner/latency/subgraph_schedule.h"

#include <algorithm>
#include <compare>
#include <functional>
#include <queue>
#include <utility>

#include "base/error.h"

namespace braid::planner {
namespace {

/// The two streams of a stage, as far as they are taken.
class Streams {
 public:
  Streams(std::span<const Subgraph> subgraphs, double slowdown)
      : subgraphs_(subgraphs), slowdown_(slowdown), ends_(subgraphs.size(), kNotLaunched) {
    BRAID_CHECK(slowdown >= 1, "computation beside communication cannot be {} times as slow", slowdown);
  }

  Nanoseconds compute_free() const { return compute_free_; }

  /// When all that it waits for will have ended.
  Nanoseconds ready(SubgraphIndex index) const {
    Nanoseconds ready = 0;
    for (const SubgraphIndex before : subgraphs_[place(index)].predecessors) {
      BRAID_CHECK(ends_[place(before)] != kNotLaunched, "subgraph {} is launched before {}", index, before);
      ready = std::max(ready, ends_[place(before)]);
    }
    return ready;
  }

  LaunchEntry run(SubgraphIndex index) {
    const Subgraph& subgraph = subgraphs_[place(index)];
    LaunchEntry entry{index, subgraph.htask()};
    entry.compute_start = std::max(compute_free_, ready(index));
    entry.compute_end = entry.compute_start + elapsed(entry.compute_start, subgraph.compute);
    entry.communication_start = entry.communication_end = compute_free_ = entry.compute_end;
    if (subgraph.communication > 0) {
      entry.communication_start = std::max(communication_free_, entry.compute_end);
      entry.communication_end = communication_free_ = entry.communication_start + subgraph.communication;
      communications_.push_back({entry.communication_start, entry.communication_end});
    }
    ends_[place(index)] = entry.communication_end;
    return entry;
  }

 private:
  static constexpr Nanoseconds kNotLaunched = -1;
  struct Span {
    Nanoseconds start = 0;
    Nanoseconds end = 0;
  };

  /// How long `work` takes from `start` on. All communication that it can run beside is already known: what closes a
  /// subgraph starts after its computation. Rounded down, so that no schedule outlasts the sequential one.
  Nanoseconds elapsed(Nanoseconds start, Nanoseconds work) {
    if (slowdown_ == 1) return work;
    while (first_ < communications_.size() && communications_[first_].end <= start) ++first_;
    Nanoseconds now = start;
    auto left = static_cast<double>(work);
    for (std::size_t i = first_; i < communications_.size(); ++i) {
      const Span& span = communications_[i];
      const auto alone = static_cast<double>(std::max(span.start, now) - now);
      if (left <= alone) break;
      left -= alone;
      now = std::max(span.start, now);
      const double beside = static_cast<double>(span.end - now) / slowdown_;
      if (left <= beside) return now - start + static_cast<Nanoseconds>(left * slowdown_);
      left -= beside;
      now = span.end;
    }
    return now - start + static_cast<Nanoseconds>(left);
  }

  std::span<const Subgraph> subgraphs_;
  double slowdown_;
  std::vector<Nanoseconds> ends_;
  std::vector<Span> communications_;
  std::size_t first_ = 0;  ///< communication that computation to come can run beside
  Nanoseconds compute_free_ = 0;
  Nanoseconds communication_free_ = 0;
};

/// Whom each subgraph holds up, and how many it waits for itself.
struct Successors {
  explicit Successors(std::span<const Subgraph> subgraphs) : lists(subgraphs.size()) {
    for (std::size_t i = 0; i < subgraphs.size(); ++i) {
      waiting.push_back(subgraphs[i].predecessors.size());
      for (const SubgraphIndex before : subgraphs[i].predecessors)
        lists[place(before)].push_back(static_cast<SubgraphIndex>(i));
    }
  }
  std::vector<std::vector<SubgraphIndex>> lists;
  std::vector<std::size_t> waiting;
};

/// Algorithm 1's priority; the least comes first.
struct Priority {
  std::int32_t depth = 0;
  Nanoseconds negative_latency = 0;
  std::int32_t htask = 0;
  SubgraphIndex index = 0;
  auto operator<=>(const Priority&) const = default;
};

template <typename Key>
using LeastFirst = std::priority_queue<Key, std::vector<Key>, std::greater<>>;

/// The ready ones: those that can start before the compute stream is free, which start alike, and those that wait for
/// results. Algorithm 1 does not ask when results are there.
class Ready {
 public:
  Ready(std::span<const Subgraph> subgraphs, LaunchRule rule) : subgraphs_(subgraphs), rule_(rule) {}

  bool empty() const { return now_.empty() && later_.empty(); }
  void add(SubgraphIndex index, Nanoseconds ready) {
    const Subgraph& subgraph = subgraphs_[place(index)];
    const Priority priority{subgraph.depth, -subgraph.latency(), subgraph.htask(), index};
    if (rule_ == LaunchRule::shallowest) {
      now_.push(priority);
    } else {
      later_.push({ready, priority});
    }
  }
  SubgraphIndex take(Nanoseconds compute_free) {
    if (!later_.empty()) {
      const Nanoseconds start = now_.empty() ? std::max(compute_free, later_.top().first) : compute_free;
      for (; !later_.empty() && later_.top().first <= start; later_.pop()) now_.push(later_.top().second);
    }
    const SubgraphIndex index = now_.top().index;
    now_.pop();
    return index;
  }

 private:
  std::span<const Subgraph> subgraphs_;
  LaunchRule rule_;
  LeastFirst<Priority> now_;
  LeastFirst<std::pair<Nanoseconds, Priority>> later_;
};

}  // namespace

std::vector<SubgraphIndex> launch_order(std::span<const Subgraph> subgraphs, LaunchRule rule, double slowdown) {
  Successors successors(subgraphs);
  Streams streams(subgraphs, slowdown);
  Ready ready(subgraphs, rule);
  for (std::size_t i = 0; i < subgraphs.size(); ++i) {
    if (successors.waiting[i] == 0) ready.add(static_cast<SubgraphIndex>(i), 0);
  }
  std::vector<SubgraphIndex> order;
  while (!ready.empty()) {
    const SubgraphIndex next = ready.take(streams.compute_free());
    order.push_back(next);
    streams.run(next);
    for (const SubgraphIndex after : successors.lists[place(next)]) {
      if (--successors.waiting[place(after)] == 0) ready.add(after, streams.ready(after));
    }
  }
  BRAID_CHECK(order.size() == subgraphs.size(), "{} subgraphs wait for one another in a circle",
              subgraphs.size() - order.size());
  return order;
}

LaunchSchedule launch(std::span<const Subgraph> subgraphs, std::span<const SubgraphIndex> order, double slowdown) {
  LaunchSchedule schedule;
  schedule.entries.reserve(order.size());
  Streams streams(subgraphs, slowdown);
  for (const SubgraphIndex index : order) {
    const LaunchEntry& entry = schedule.entries.emplace_back(streams.run(index));
    schedule.makespan = std::max(schedule.makespan, entry.communication_end);
    schedule.compute_busy += entry.compute_end - entry.compute_start;
    schedule.communication_busy += entry.communication_end - entry.communication_start;
  }
  // Whenever nothing computes, the next subgraph waits for communication under way.
  schedule.exposed_communication = schedule.makespan - schedule.compute_busy;
  return schedule;
}

LaunchSchedule schedule(std::span<const Subgraph> subgraphs, LaunchRule rule, double slowdown) {
  return launch(subgraphs, launch_order(subgraphs, rule, slowdown), slowdown);
}

Nanoseconds sequential_time(std::span<const Subgraph> subgraphs) {
  Nanoseconds time = 0;
  for (const Subgraph& subgraph : subgraphs) time += subgraph.latency();
  return time;
}

}  // namespace braid::planner
