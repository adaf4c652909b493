#include "planner/bound/pipeline_bound.h"

#include <array>
#include <functional>
#include <limits>
#include <numeric>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "planner/template_study.h"

namespace braid::planner {
namespace {

using namespace testing;

constexpr Nanoseconds kNever = std::numeric_limits<Nanoseconds>::max();

/// Tasks whose microbatches are all alike but for their task's latency, one after another in `instance.jobs`.
struct SmallCase {
  int tasks = 1;
  int microbatches = 1;
  PipelineInstance instance;

  BoundProblem problem(bool drains) const {
    BoundProblem problem;
    for (int t = 0; t < tasks; ++t) {
      BoundTask task;
      task.name = fmt::format("t{}", t);
      for (int m = 0; m < microbatches; ++m) {
        const PipelineJob& job = instance.jobs[static_cast<std::size_t>(t * microbatches + m)];
        BoundTask one;
        one.batch.whole = {doubles(job.forward), doubles(job.backward), {}, doubles(instance.messages), {}};
        one.batch.least = one.batch.whole;
        task.batch = m == 0 ? one.batch : add_up(std::array{task, one});
      }
      problem.tasks.push_back(task);
    }
    problem.together = add_up(problem.tasks);
    problem.drains = drains;
    return problem;
  }
  LowerBound bound(bool drains) const { return pipeline_bound(problem(drains)); }

 private:
  static std::vector<double> doubles(const std::vector<Nanoseconds>& times) { return {times.begin(), times.end()}; }
};

SmallCase any_small_case(int stages, int tasks, int microbatches) {
  SmallCase made{tasks, microbatches, {}};
  made.instance.stages = stages;
  const bool alike = *rc::gen::arbitrary<bool>();
  const auto times = [&] {
    return *rc::gen::container<std::vector<Nanoseconds>>(static_cast<std::size_t>(stages),
                                                         rc::gen::inRange<Nanoseconds>(1, 9));
  };
  for (int j = 0; j < tasks * microbatches; ++j) {
    PipelineJob job{j, 1, times(), times(), {}};
    if (alike && j % microbatches > 0) job = made.instance.jobs.back();
    made.instance.jobs.push_back(job);
  }
  made.instance.messages.assign(static_cast<std::size_t>(stages - 1), *rc::gen::inRange<Nanoseconds>(0, 5));
  return made;
}

/// The shortest of all schedules: passes are put down in the order of their starts, in every order there is; what can
/// no longer be the shortest is left.
class ShortestSchedule {
 public:
  explicit ShortestSchedule(const PipelineInstance& instance)
      : instance_(instance),
        stages_(static_cast<std::size_t>(instance.stages)),
        free_(stages_, 0),
        left_(stages_, 0),
        link_free_(2 * stages_, 0),
        done_(instance.jobs.size(), 0),
        ready_(instance.jobs.size(), 0) {
    for (const PipelineJob& job : instance.jobs) {
      for (std::size_t s = 0; s < stages_; ++s) left_[s] += job.forward[s] + job.backward[s];
    }
  }

  /// No further than to `enough`.
  Nanoseconds makespan(double enough) {
    enough_ = enough;
    extend(0, 0);
    return best_;
  }

 private:
  void extend(Nanoseconds begin, std::size_t ended) {
    if (ended == instance_.jobs.size()) best_ = std::min(best_, *std::max_element(free_.begin(), free_.end()));
    for (std::size_t s = 0; s < stages_; ++s) {
      if (std::max(free_[s], begin) + left_[s] >= best_ && left_[s] > 0) return;
    }
    for (std::size_t j = 0; j < instance_.jobs.size(); ++j) {
      const std::size_t pass = done_[j];
      if (pass == 2 * stages_ || static_cast<double>(best_) <= enough_) continue;
      const bool forward = pass < stages_;
      const std::size_t s = forward ? pass : 2 * stages_ - 1 - pass;
      const Nanoseconds length = (forward ? instance_.jobs[j].forward : instance_.jobs[j].backward)[s];
      const Nanoseconds start = std::max(free_[s], ready_[j]);
      if (start < begin) continue;
      // The message that the pass ends with, unless it turns around or is home.
      const bool sends = pass + 1 != stages_ && pass + 1 != 2 * stages_;
      const Nanoseconds old_free = free_[s], old_ready = ready_[j], old_link = link_free_[pass];
      free_[s] = ready_[j] = start + length;
      left_[s] -= length;
      if (sends) ready_[j] = link_free_[pass] = std::max(link_free_[pass], free_[s]) + message(forward ? s : s - 1);
      ++done_[j];
      extend(start, ended + (done_[j] == 2 * stages_));
      --done_[j];
      left_[s] += length;
      free_[s] = old_free, ready_[j] = old_ready, link_free_[pass] = old_link;
    }
  }

  Nanoseconds message(std::size_t link) const { return instance_.messages.empty() ? 0 : instance_.messages[link]; }

  const PipelineInstance& instance_;
  std::size_t stages_;
  std::vector<Nanoseconds> free_, left_, link_free_;
  std::vector<std::size_t> done_;   // passes of a job that are put down
  std::vector<Nanoseconds> ready_;  // when its next may start
  Nanoseconds best_ = kNever;
  double enough_ = 0;
};

void record(const Ratios& tightness) {
  ::testing::Test::RecordProperty("mean", fmt::format("{:.4f}", tightness.mean));
  ::testing::Test::RecordProperty("least", fmt::format("{:.4f}", tightness.least));
}

TEST(PipelineBound, TheShortestScheduleIsFoundAsInAllPairsOfOrders) {
  SmallCase made{2, 1, even_buckets(2, {3, 5}, {1, 1})};
  made.instance.messages = {2};
  std::vector<PipelineSlot> slots;
  for (std::int32_t j = 0; j < 2; ++j) {
    slots.push_back({Kind::forward, j, 0, 0});
    slots.push_back({Kind::backward, j, 0, 0});
  }
  std::vector<int> first{0, 1, 2, 3};
  Nanoseconds least = kNever;
  do {
    std::vector<int> second{0, 1, 2, 3};
    do {
      PipelineOrder order(2);
      for (int i = 0; i < 4; ++i) {
        order[0].push_back(slots[static_cast<std::size_t>(first[static_cast<std::size_t>(i)])]);
        order[1].push_back(slots[static_cast<std::size_t>(second[static_cast<std::size_t>(i)])]);
      }
      if (const auto times = derive_times(made.instance, order)) least = std::min(least, times->makespan);
    } while (std::next_permutation(second.begin(), second.end()));
  } while (std::next_permutation(first.begin(), first.end()));
  EXPECT_EQ(ShortestSchedule(made.instance).makespan(0), least);
}

TEST(PipelineBound, NoScheduleThatDrainsIsFaster) {
  Ratios tightness;
  const bool held = rc::check([&] {
    // Three microbatches on three stages is what can be searched in no time, whatever their times.
    const int stages = *rc::gen::inRange(1, 4), tasks = *rc::gen::inRange(1, 4);
    const SmallCase made = any_small_case(stages, tasks, *rc::gen::inRange(1, 3 / tasks + 1));
    const double bound = made.bound(true).step_seconds;
    const auto shortest = static_cast<double>(ShortestSchedule(made.instance).makespan(bound));
    RC_ASSERT(bound <= shortest);
    tightness.add(bound / shortest);
  });
  EXPECT_TRUE(held);
  record(tightness);
}

/// What a stage does in each period: passes of each job. A task's passes before `first_of_task` belong to the global
/// batch of the period before.
struct PeriodicOrder {
  std::vector<PipelineSlot> slots;
  std::vector<std::size_t> first_of_task;
};

/// All orders in which each task's passes stand in turn batch by batch, forwards before their backwards.
std::vector<PeriodicOrder> periodic_orders(const SmallCase& made, bool any_rotation) {
  const std::size_t jobs = made.instance.jobs.size();
  std::vector<std::size_t> passes(2 * jobs);
  std::iota(passes.begin(), passes.end(), 0);
  std::vector<PeriodicOrder> orders;
  do {
    if (!any_rotation && passes.front() != 0) break;
    PeriodicOrder order;
    for (const std::size_t pass : passes)
      order.slots.push_back(
          {pass % 2 == 0 ? Kind::forward : Kind::backward, static_cast<std::int32_t>(pass / 2), 0, 0});
    std::vector<PeriodicOrder> begun{order};
    for (int t = 0; t < made.tasks; ++t) {
      std::vector<PeriodicOrder> more;
      for (std::size_t first = 0; first < order.slots.size(); ++first) {
        const auto of_task = [&](const PipelineSlot& slot) { return slot.job / made.microbatches == t; };
        if (!of_task(order.slots[first])) continue;
        std::vector<bool> forwarded(jobs, false);
        bool valid = true;
        for (std::size_t i = 0; i < order.slots.size(); ++i) {
          const PipelineSlot& slot = order.slots[(first + i) % order.slots.size()];
          const auto job = static_cast<std::size_t>(slot.job);
          if (of_task(slot)) valid = valid && (slot.pass == Kind::forward || forwarded[job]);
          forwarded[job] = forwarded[job] || slot.pass == Kind::forward;
        }
        for (PeriodicOrder one : begun) {
          one.first_of_task.push_back(first);
          if (valid) more.push_back(one);
        }
      }
      begun = std::move(more);
    }
    orders.insert(orders.end(), begun.begin(), begun.end());
  } while (std::next_permutation(passes.begin(), passes.end()));
  return orders;
}

/// Periods before what is measured, and those measured.
struct Stretch {
  std::size_t settled = 6;
  std::size_t measured = 12;
};

/// Time per period in mid-stream, or nothing when passes wait in a circle.
std::optional<double> period_of(const SmallCase& made, const std::vector<const PeriodicOrder*>& stages,
                                const Stretch& stretch) {
  const std::size_t jobs = made.instance.jobs.size(), periods = stretch.settled + stretch.measured + 2;
  PipelineInstance stream = made.instance;
  stream.jobs.clear();
  for (std::size_t period = 0; period < periods; ++period)
    stream.jobs.insert(stream.jobs.end(), made.instance.jobs.begin(), made.instance.jobs.end());
  PipelineOrder orders;
  for (const PeriodicOrder* stage : stages) {
    std::vector<PipelineSlot>& order = orders.emplace_back();
    for (std::size_t period = 0; period < periods; ++period) {
      for (std::size_t i = 0; i < stage->slots.size(); ++i) {
        PipelineSlot slot = stage->slots[i];
        const bool late = i < stage->first_of_task[static_cast<std::size_t>(slot.job / made.microbatches)];
        if (late ? period == 0 : period + 1 == periods) continue;
        slot.job += static_cast<std::int32_t>((period - late) * jobs);
        order.push_back(slot);
      }
    }
  }
  const std::optional<DerivedTimes> times = derive_times(stream, orders);
  if (!times) return std::nullopt;
  // Each job comes on the first stage once a period.
  Nanoseconds begin = 0, end = 0;
  for (std::size_t i = 0; i < orders[0].size(); ++i) {
    const PipelineSlot& slot = orders[0][i];
    if (slot.pass != Kind::backward) continue;
    if (slot.job == static_cast<std::int32_t>(stretch.settled * jobs)) begin = times->start[0][i];
    if (slot.job == static_cast<std::int32_t>((stretch.settled + stretch.measured) * jobs)) end = times->start[0][i];
  }
  return static_cast<double>(end - begin) / static_cast<double>(stretch.measured);
}

/// What seems to be less than `bound` is looked at for longer: tasks may take long to fall into step.
double shortest_period(const SmallCase& made, double bound) {
  // Where a period is said to begin is no matter: on the first stage with job 0.
  const std::vector<PeriodicOrder> first = periodic_orders(made, false), others = periodic_orders(made, true);
  double shortest = std::numeric_limits<double>::infinity();
  std::vector<const PeriodicOrder*> chosen;
  const std::function<void()> choose = [&] {
    if (chosen.size() == static_cast<std::size_t>(made.instance.stages)) {
      std::optional<double> period = period_of(made, chosen, {});
      if (period && *period < bound) period = period_of(made, chosen, {300, 120});
      if (period) shortest = std::min(shortest, *period);
      return;
    }
    for (const PeriodicOrder& order : chosen.empty() ? first : others) {
      chosen.push_back(&order);
      choose();
      chosen.pop_back();
    }
  };
  choose();
  return shortest;
}

TEST(PipelineBound, NoPeriodicOrderIsFasterInMidStream) {
  struct Size {
    int stages, tasks, microbatches;
  };
  Ratios tightness;
  for (const Size size : {Size{1, 2, 1}, {1, 1, 2}, {2, 1, 1}, {2, 2, 1}, {2, 1, 2}, {3, 1, 1}, {3, 2, 1}}) {
    const bool held = rc::check([&] {
      const SmallCase made = any_small_case(size.stages, size.tasks, size.microbatches);
      const double bound = made.bound(false).step_seconds, shortest = shortest_period(made, bound);
      RC_ASSERT(bound <= shortest + 1e-9);
      tightness.add(bound / shortest);
    });
    EXPECT_TRUE(held) << size.stages << " stages, " << size.tasks << " tasks";
  }
  record(tightness);
}

TEST(PipelineBound, IsMLorasClosedFormWhereAllPassesAreAlike) {
  for (int tasks = 1; tasks <= 8; ++tasks) {
    for (int stages = 1; stages <= 8; ++stages) {
      for (int microbatches = 1; microbatches <= 8; ++microbatches) {
        SmallCase made{tasks, microbatches,
                       even_buckets(stages, std::vector<Nanoseconds>(static_cast<std::size_t>(tasks), 5),
                                    std::vector<int>(static_cast<std::size_t>(tasks), microbatches))};
        EXPECT_EQ(made.bound(false).step_seconds, 10 * std::max(tasks * microbatches, stages + microbatches - 1));
        EXPECT_EQ(made.bound(true).step_seconds, 10 * (stages + tasks * microbatches - 1));
      }
    }
  }
}

TEST(PipelineBound, ARoundTripAndTheSlowestStagesOtherPassesIsNoBound) {
  // Forward and backward take 2 on the first stage and 1 on the second: its trip hides behind the other microbatch.
  SmallCase made{1, 2, even_buckets(2, {2}, {2})};
  for (PipelineJob& job : made.instance.jobs) job.forward[1] = job.backward[1] = 1;
  EXPECT_EQ(ShortestSchedule(made.instance).makespan(0), 8);
  EXPECT_LT(8, 6 + 4);
  EXPECT_EQ(made.bound(true).step_seconds, 8);
}

TEST(PipelineBound, SaysWhatBinds) {
  const auto binds = [](const SmallCase& made, bool drains) { return made.bound(drains).binds; };
  SmallCase made{2, 2, even_buckets(2, {2, 2}, {2, 2})};
  EXPECT_EQ(binds(made, false), "compute of stage 0");
  EXPECT_EQ(binds(made, true), "compute of stage 1");
  made.instance.messages = {7};
  EXPECT_EQ(binds(made, false), "cycle of task t0");
  made.instance.messages = {100};
  EXPECT_EQ(binds(made, true), "link 0-1");
  BoundProblem problem = made.problem(false);
  problem.together.whole.collective = {1, 1e6};
  EXPECT_EQ(pipeline_bound(problem).binds, "collectives of stage 1");
  EXPECT_EQ(pipeline_bound(problem).step_seconds, 1e6);
  problem.drains = true;
  EXPECT_EQ(pipeline_bound(problem).step_seconds, 4 + 2 * 100 + 1e6);
}

TEST(PipelineBound, GradientSumsOfAllTasksFollowOneAnother) {
  const SmallCase made{2, 1, even_buckets(2, {2, 2}, {1, 1})};
  BoundProblem problem = made.problem(false);
  problem.tasks[0].sync_seconds = {10, 1};
  problem.tasks[1].sync_seconds = {20, 1};
  EXPECT_EQ(pipeline_bound(problem).binds, "gradient sums of stage 0");
  EXPECT_EQ(pipeline_bound(problem).step_seconds, 30);
}

TEST(PipelineBound, PassesThatMostlyWaitBindAsCollectives) {
  const SmallCase made{1, 1, even_buckets(1, {2}, {1})};
  BoundProblem problem = made.problem(false);
  for (const auto& [waiting, binds] : {std::pair{2.0, "compute of stage 0"}, {2.5, "collectives of stage 0"}}) {
    problem.together.whole.waiting = {waiting};
    EXPECT_EQ(pipeline_bound(problem).binds, binds);
    EXPECT_EQ(pipeline_bound(problem).step_seconds, 4);
  }
}

TEST(PipelineBound, StepsCountOnTheirStageAndTheFirstStagesInACycle) {
  SmallCase made{1, 1, even_buckets(2, {2}, {1})};
  BoundProblem problem = made.problem(false);
  problem.tasks[0].step_seconds = {3, 100};
  EXPECT_EQ(pipeline_bound(problem).step_seconds, 104);
  problem.tasks[0].step_seconds = {3, 1};
  problem.tasks[0].finish_seconds = 3;
  EXPECT_EQ(pipeline_bound(problem).step_seconds, 11);
  problem.drains = true;
  EXPECT_EQ(pipeline_bound(problem).step_seconds, 11);
}

}  // namespace
}  // namespace braid::planner
