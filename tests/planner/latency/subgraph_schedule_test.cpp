#include "planner/latency/subgraph_schedule.h"

#include <algorithm>
#include <numeric>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "base/error.h"

namespace braid::planner {
namespace {

/// Sets depths; predecessors come before their successors.
std::vector<Subgraph> with_depths(std::vector<Subgraph> subgraphs) {
  for (Subgraph& subgraph : subgraphs) {
    for (const SubgraphIndex before : subgraph.predecessors)
      subgraph.depth = std::max(subgraph.depth, subgraphs[place(before)].depth + 1);
  }
  return subgraphs;
}

/// hTasks whose subgraphs wait for some of their own before; as chains, each for the one before it alone.
std::vector<Subgraph> any_bucket(int most_htasks, int most_subgraphs, bool chains) {
  std::vector<Subgraph> all;
  const int htasks = *rc::gen::inRange(1, most_htasks + 1);
  for (int h = 0; h < htasks; ++h) {
    const auto first = static_cast<SubgraphIndex>(all.size());
    const int count = *rc::gen::inRange(1, most_subgraphs + 1);
    for (SubgraphIndex i = first; i < first + count; ++i) {
      Subgraph subgraph;
      subgraph.parts = {{h, {}}};
      subgraph.compute = *rc::gen::inRange(0, 20);
      subgraph.communication = *rc::gen::inRange(0, 3) > 0 ? *rc::gen::inRange(0, 20) : 0;
      for (SubgraphIndex before = first; before < i; ++before) {
        if (chains ? before == i - 1 : *rc::gen::inRange(0, 3) == 0) subgraph.predecessors.push_back(before);
      }
      all.push_back(subgraph);
    }
  }
  return with_depths(std::move(all));
}

LaunchRule any_rule() {
  return *rc::gen::element(LaunchRule::shallowest, LaunchRule::earliest_start);
}

double any_slowdown() {
  return *rc::gen::element(1.0, 1.1, 84.0 / 76, 2.0, 7.0);
}

/// Any order that the DAGs allow.
std::vector<SubgraphIndex> any_order(const std::vector<Subgraph>& subgraphs) {
  std::vector<SubgraphIndex> order;
  std::vector<bool> launched(subgraphs.size(), false);
  while (order.size() < subgraphs.size()) {
    std::vector<SubgraphIndex> ready;
    for (std::size_t i = 0; i < subgraphs.size(); ++i) {
      const auto& before = subgraphs[i].predecessors;
      if (!launched[i] && std::all_of(before.begin(), before.end(), [&](auto u) { return launched[place(u)]; }))
        ready.push_back(static_cast<SubgraphIndex>(i));
    }
    order.push_back(*rc::gen::elementOf(ready));
    launched[place(order.back())] = true;
  }
  return order;
}

Nanoseconds critical_path(const std::vector<Subgraph>& subgraphs) {
  std::vector<Nanoseconds> ends;
  for (const Subgraph& subgraph : subgraphs) {
    Nanoseconds start = 0;
    for (const SubgraphIndex before : subgraph.predecessors) start = std::max(start, ends[place(before)]);
    ends.push_back(start + subgraph.latency());
  }
  return *std::max_element(ends.begin(), ends.end());
}

/// Time within [start, end) in which communication runs.
Nanoseconds beside(const LaunchSchedule& schedule, Nanoseconds start, Nanoseconds end) {
  Nanoseconds time = 0;
  for (const LaunchEntry& entry : schedule.entries)
    time +=
        std::max<Nanoseconds>(0, std::min(end, entry.communication_end) - std::max(start, entry.communication_start));
  return time;
}

RC_GTEST_PROP(SubgraphSchedule, InterleavesAllDagsAndKeepsTheirOrder, ()) {
  const std::vector<Subgraph> subgraphs = any_bucket(5, 8, false);
  const LaunchSchedule made = schedule(subgraphs, any_rule(), any_slowdown());
  std::vector<const LaunchEntry*> entries(subgraphs.size(), nullptr);
  Nanoseconds compute_free = 0, communication_free = 0;
  for (const LaunchEntry& entry : made.entries) {
    RC_ASSERT(entries[place(entry.subgraph)] == nullptr);
    entries[place(entry.subgraph)] = &entry;
    RC_ASSERT(entry.htask == subgraphs[place(entry.subgraph)].htask());
    RC_ASSERT(entry.compute_start >= compute_free);
    compute_free = entry.compute_end;
    RC_ASSERT(entry.communication_start >= entry.compute_end);
    const Nanoseconds communication = subgraphs[place(entry.subgraph)].communication;
    RC_ASSERT(entry.communication_end - entry.communication_start == communication);
    if (communication == 0) continue;
    RC_ASSERT(entry.communication_start >= communication_free);
    communication_free = entry.communication_end;
  }
  RC_ASSERT(made.entries.size() == subgraphs.size());
  for (const LaunchEntry& entry : made.entries) {
    for (const SubgraphIndex before : subgraphs[place(entry.subgraph)].predecessors)
      RC_ASSERT(entries[place(before)]->communication_end <= entry.compute_start);
  }
}

RC_GTEST_PROP(SubgraphSchedule, ComputationTakesLongerByWhatRunsBeside, ()) {
  const std::vector<Subgraph> subgraphs = any_bucket(4, 6, false);
  const double slowdown = any_slowdown();
  const LaunchSchedule made = launch(subgraphs, any_order(subgraphs), slowdown);
  for (const LaunchEntry& entry : made.entries) {
    const Nanoseconds time = entry.compute_end - entry.compute_start;
    const Nanoseconds slow = beside(made, entry.compute_start, entry.compute_end);
    const double done = static_cast<double>(time - slow) + static_cast<double>(slow) / slowdown;
    const auto work = static_cast<double>(subgraphs[place(entry.subgraph)].compute);
    RC_ASSERT(done <= work + 1e-9);
    RC_ASSERT(done > work - 1);
    if (slowdown == 1) RC_ASSERT(static_cast<double>(time) == work);
  }
}

RC_GTEST_PROP(SubgraphSchedule, NoOrderIsSlowerThanTheSequentialNorFasterThanItsBounds, ()) {
  const std::vector<Subgraph> subgraphs = any_bucket(5, 8, false);
  const double slowdown = any_slowdown();
  const std::vector<SubgraphIndex> order =
      *rc::gen::arbitrary<bool>() ? any_order(subgraphs) : launch_order(subgraphs, any_rule(), slowdown);
  const LaunchSchedule made = launch(subgraphs, order, slowdown);
  RC_ASSERT(made.makespan <= sequential_time(subgraphs));
  RC_ASSERT(made.makespan >= made.compute_busy);
  RC_ASSERT(made.makespan >= made.communication_busy);
  RC_ASSERT(made.makespan >= critical_path(subgraphs));
  Nanoseconds beside_compute = 0;
  for (const LaunchEntry& entry : made.entries) beside_compute += beside(made, entry.compute_start, entry.compute_end);
  RC_ASSERT(made.exposed_communication == made.communication_busy - beside_compute);
}

RC_GTEST_PROP(SubgraphSchedule, AChainAloneIsSequential, ()) {
  const std::vector<Subgraph> subgraphs = any_bucket(1, 12, true);
  const LaunchSchedule made = schedule(subgraphs, any_rule(), any_slowdown());
  RC_ASSERT(made.makespan == sequential_time(subgraphs));
  RC_ASSERT(made.exposed_communication == made.communication_busy);
}

/// When nothing computes before `entry`, from where on.
std::vector<std::pair<std::size_t, Nanoseconds>> idle_before(const LaunchSchedule& made) {
  std::vector<std::pair<std::size_t, Nanoseconds>> idle;
  Nanoseconds free = 0;
  for (std::size_t i = 0; i < made.entries.size(); ++i) {
    if (made.entries[i].compute_start > free) idle.push_back({i, free});
    free = made.entries[i].compute_end;
  }
  return idle;
}

Nanoseconds ready_at(const std::vector<Subgraph>& subgraphs, const LaunchSchedule& made, SubgraphIndex index) {
  Nanoseconds ready = 0;
  for (const LaunchEntry& entry : made.entries) {
    const auto& before = subgraphs[place(index)].predecessors;
    if (std::find(before.begin(), before.end(), entry.subgraph) != before.end())
      ready = std::max(ready, entry.communication_end);
  }
  return ready;
}

RC_GTEST_PROP(SubgraphSchedule, ComputationPausesOnlyForCommunicationThatTheNextLaunchWaitsFor, ()) {
  const std::vector<Subgraph> subgraphs = any_bucket(5, 8, false);
  const double slowdown = any_slowdown();
  const LaunchSchedule made = schedule(subgraphs, any_rule(), slowdown);
  for (const auto& [i, since] : idle_before(made)) {
    const Nanoseconds until = made.entries[i].compute_start;
    RC_ASSERT(ready_at(subgraphs, made, made.entries[i].subgraph) == until);
    RC_ASSERT(beside(made, since, until) == until - since);
  }
}

RC_GTEST_PROP(SubgraphSchedule, EarliestStartCoversCommunicationWheneverAnythingIsReady, ()) {
  const std::vector<Subgraph> subgraphs = any_bucket(5, 8, false);
  const LaunchSchedule made = schedule(subgraphs, LaunchRule::earliest_start, any_slowdown());
  for (const auto& [i, since] : idle_before(made)) {
    for (std::size_t later = i; later < made.entries.size(); ++later)
      RC_ASSERT(ready_at(subgraphs, made, made.entries[later].subgraph) >= made.entries[i].compute_start);
  }
}

RC_GTEST_PROP(SubgraphSchedule, TheShallowestIsLaunchedFirstAndOfThoseTheLongest, ()) {
  const std::vector<Subgraph> subgraphs = any_bucket(5, 8, false);
  const std::vector<SubgraphIndex> order = launch_order(subgraphs, LaunchRule::shallowest);
  // Everything of a depth is ready before anything deeper is at the head, so that the order is just sorted.
  RC_ASSERT(std::is_sorted(order.begin(), order.end(), [&](SubgraphIndex a, SubgraphIndex b) {
    const Subgraph &x = subgraphs[place(a)], &y = subgraphs[place(b)];
    return std::tuple(x.depth, -x.latency(), x.htask(), a) < std::tuple(y.depth, -y.latency(), y.htask(), b);
  }));
}

/// Over every order that the DAGs allow.
Nanoseconds least_makespan(const std::vector<Subgraph>& subgraphs, std::vector<SubgraphIndex>& order,
                           std::vector<bool>& launched) {
  if (order.size() == subgraphs.size()) return launch(subgraphs, order).makespan;
  Nanoseconds least = sequential_time(subgraphs);
  for (std::size_t i = 0; i < subgraphs.size(); ++i) {
    const auto& before = subgraphs[i].predecessors;
    if (launched[i] || !std::all_of(before.begin(), before.end(), [&](auto u) { return launched[place(u)]; })) continue;
    launched[i] = true;
    order.push_back(static_cast<SubgraphIndex>(i));
    least = std::min(least, least_makespan(subgraphs, order, launched));
    order.pop_back();
    launched[i] = false;
  }
  return least;
}

Nanoseconds least_makespan(const std::vector<Subgraph>& subgraphs) {
  std::vector<SubgraphIndex> order;
  std::vector<bool> launched(subgraphs.size(), false);
  return least_makespan(subgraphs, order, launched);
}

RC_GTEST_PROP(SubgraphSchedule, IsNoFasterThanTheBestOrderAndAtMostTwiceAsSlow, ()) {
  const std::vector<Subgraph> subgraphs = any_bucket(3, 3, true);
  const Nanoseconds best = least_makespan(subgraphs);
  for (const LaunchRule rule : {LaunchRule::shallowest, LaunchRule::earliest_start}) {
    const Nanoseconds time = schedule(subgraphs, rule).makespan;
    RC_ASSERT(time >= best);
    // Both streams' work adds up to the sequential time, and no order does better than the busier of the two.
    RC_ASSERT(time <= 2 * best);
  }
}

Subgraph subgraph(std::int32_t htask, Nanoseconds compute, Nanoseconds communication,
                  std::vector<SubgraphIndex> predecessors) {
  Subgraph made;
  made.parts = {{htask, {}}};
  made.compute = compute;
  made.communication = communication;
  made.predecessors = std::move(predecessors);
  return made;
}

TEST(SubgraphSchedule, EqualTasksHideAllCommunicationButTheLast) {
  // n hTasks of k subgraphs that compute for c and communicate for m <= (n − 1) c: what remains is the last one's.
  constexpr Nanoseconds kCompute = 7;
  for (const int htasks : {2, 3, 5}) {
    const Nanoseconds communication = std::min(kCompute, (htasks - 1) * kCompute);
    std::vector<Subgraph> subgraphs;
    for (int h = 0; h < htasks; ++h) {
      for (int i = 0; i < 6; ++i) {
        const auto last = static_cast<SubgraphIndex>(subgraphs.size()) - 1;
        subgraphs.push_back(subgraph(h, kCompute, communication,
                                     i == 0 ? std::vector<SubgraphIndex>{} : std::vector<SubgraphIndex>{last}));
      }
    }
    EXPECT_EQ(schedule(with_depths(subgraphs)).makespan, htasks * 6 * kCompute + communication);
  }
}

TEST(SubgraphSchedule, LaunchingTheLongestOfADepthFirstCanHoldUpWhoIsReady) {
  // At depth 1 the second hTask's subgraph is the longer one, yet its communication ends last.
  const std::vector<Subgraph> subgraphs =
      with_depths({subgraph(0, 10, 1, {}), subgraph(0, 5, 0, {0}), subgraph(1, 5, 5, {}), subgraph(1, 6, 0, {2})});
  EXPECT_EQ(schedule(subgraphs, LaunchRule::shallowest).makespan, 31);
  EXPECT_EQ(schedule(subgraphs, LaunchRule::earliest_start).makespan, 26);
}

TEST(SubgraphSchedule, OrdersThatDependenciesForbidAreFound) {
  const std::vector<Subgraph> chain = {subgraph(0, 1, 0, {}), subgraph(0, 1, 0, {0})};
  EXPECT_THROW(launch(chain, std::vector<SubgraphIndex>{1, 0}), InternalError);
  EXPECT_THROW(schedule(std::vector<Subgraph>{subgraph(0, 1, 0, {1}), subgraph(0, 1, 0, {0})}), InternalError);
  EXPECT_EQ(schedule(std::vector<Subgraph>{}).makespan, 0);
}

}  // namespace
}  // namespace braid::planner
