#include "planner/plan/task_scheduler.h"

#include <algorithm>
#include <numeric>
#include <set>

#include <gtest/gtest.h>

#include "base/random.h"

namespace braid::planner {
namespace {

constexpr double kError = 0.0025;

void measure(TaskScheduler& scheduler, TaskIndex task, Bytes peak) {
  scheduler.measured(task, {&peak, 1});
}

/// Tasks that come, run and end beside a scheduler that sees of their memory only what ran.
class Machine {
 public:
  explicit Machine(std::uint64_t seed) : random_(seed) {
    truth_ = {1e8 * uniform(), 1e5 * uniform(), uniform() < 0.5 ? 0 : 200 * uniform()};
    const int tasks = 3 + static_cast<int>(10 * uniform());
    for (TaskIndex t = 0; t < tasks; ++t) {
      tasks_.push_back({{t, static_cast<std::int64_t>(3 * uniform()), 1 + static_cast<std::int64_t>(8 * uniform()),
                         64 + 64 * static_cast<std::int64_t>(8 * uniform())},
                        static_cast<std::int64_t>(20 * uniform()),
                        1 + static_cast<std::int64_t>(15 * uniform())});
      largest_ = std::max(largest_, most_taken(tasks_.back().queued));
    }
    // Room for the largest task by itself, and for some beside it.
    capacity_ = static_cast<Bytes>(largest_ * (1 + 2 * uniform())) + 1;
  }

  void run() {
    TaskScheduler scheduler({capacity_}, kError);
    std::set<TaskIndex> waiting;
    std::vector<TaskIndex> before;
    std::size_t ended = 0;
    for (std::int64_t border = 0; ended < tasks_.size(); ++border) {
      ASSERT_LT(border, 2000) << "tasks starve";
      for (const Task& task : tasks_) {
        if (task.arrival == border) scheduler.arrive(task.queued), waiting.insert(task.queued.task);
      }
      const std::vector<TaskIndex> running = scheduler.next();
      ASSERT_EQ(running.empty(), waiting.empty());
      check_memory(running);
      check_order(scheduler, running, waiting);
      for (const TaskIndex task : before) {
        if (waiting.contains(task) && std::find(running.begin(), running.end(), task) == running.end()) ++preempted;
      }
      most_at_once = std::max(most_at_once, running.size());
      for (const TaskIndex task : running) {
        Task& mine = tasks_[static_cast<std::size_t>(task)];
        measure(scheduler, task, taken(mine.queued));
        if (--mine.steps > 0) continue;
        scheduler.leave(task);
        waiting.erase(task);
        ++ended;
      }
      before = running;
    }
  }

  int preempted = 0;
  std::size_t most_at_once = 0;

 private:
  struct Task {
    QueuedTask queued;
    std::int64_t arrival = 0;
    std::int64_t steps = 0;
  };

  double uniform() { return random_.next_uniform(); }
  double most_taken(const QueuedTask& task) const { return truth_.bytes(task.batch, task.length) * (1 + kError); }
  /// Anew each time, within the error.
  Bytes taken(const QueuedTask& task) {
    return static_cast<Bytes>(truth_.bytes(task.batch, task.length) * (1 + kError * (2 * uniform() - 1)));
  }

  /// Never out of memory, whatever the error does.
  void check_memory(const std::vector<TaskIndex>& running) const {
    double total = 0;
    for (const TaskIndex task : running) total += most_taken(tasks_[static_cast<std::size_t>(task)].queued);
    EXPECT_LE(total, static_cast<double>(capacity_));
  }

  /// A task waits only where it does not fit, as far as is known, beside those that run and go before it.
  void check_order(const TaskScheduler& scheduler, const std::vector<TaskIndex>& running,
                   const std::set<TaskIndex>& waiting) const {
    const auto before = [&](TaskIndex a, TaskIndex b) {
      const Task &one = tasks_[static_cast<std::size_t>(a)], &other = tasks_[static_cast<std::size_t>(b)];
      return std::tuple(-one.queued.priority, one.arrival, a) < std::tuple(-other.queued.priority, other.arrival, b);
    };
    for (const TaskIndex task : waiting) {
      if (std::find(running.begin(), running.end(), task) != running.end()) continue;
      const std::optional<double> mine = scheduler.most_bytes(task);
      if (!mine) continue;
      double total = *mine;
      for (const TaskIndex other : running) {
        if (before(other, task)) total += scheduler.most_bytes(other).value_or(static_cast<double>(capacity_));
      }
      EXPECT_GT(total, static_cast<double>(capacity_)) << "task " << task << " waits for no reason";
    }
  }

  RandomStream random_;
  costmodel::MemoryFit truth_;
  std::vector<Task> tasks_;
  Bytes capacity_ = 0;
  double largest_ = 0;
};

TEST(TaskScheduler, NeverRunsOutOfMemoryKeepsTheOrderAndEndsEveryTask) {
  int preempted = 0, shared = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    Machine machine(seed);
    machine.run();
    if (::testing::Test::HasFailure()) FAIL() << "seed " << seed;
    preempted += machine.preempted;
    shared += machine.most_at_once > 1;
  }
  EXPECT_GT(preempted, 100);
  EXPECT_GT(shared, 150);
}

TEST(TaskScheduler, AHighPriorityTaskTakesThePlaceOfALowOneAtTheNextBorder) {
  TaskScheduler scheduler({250}, 0);
  scheduler.arrive({0, 0, 1, 100});
  EXPECT_EQ(scheduler.next(), (std::vector<TaskIndex>{0}));
  measure(scheduler, 0, 100);
  scheduler.arrive({1, 0, 1, 100});
  scheduler.arrive({2, 0, 1, 100});
  EXPECT_EQ(scheduler.next(), (std::vector<TaskIndex>{0, 1}));  // first come, first served
  scheduler.arrive({3, 5, 1, 100});
  EXPECT_EQ(scheduler.next(), (std::vector<TaskIndex>{3, 0}));
  scheduler.leave(3);
  EXPECT_EQ(scheduler.next(), (std::vector<TaskIndex>{0, 1}));
}

TEST(TaskScheduler, AnUrgentTaskOfUnknownSizeRunsAndIsMeasured) {
  TaskScheduler scheduler({1000});
  scheduler.arrive({0, 0, 1, 64});
  measure(scheduler, 0, 100);
  scheduler.arrive({1, 10, 1, 1024});  // by all that is known, up to 25,600
  EXPECT_EQ(scheduler.next(), (std::vector<TaskIndex>{1}));
  measure(scheduler, 1, 150);
  EXPECT_EQ(scheduler.next(), (std::vector<TaskIndex>{1, 0}));
}

TEST(TaskScheduler, HugeTasksDoNotOverflow) {
  TaskScheduler scheduler({Bytes{80} << 30});
  scheduler.arrive({0, 0, 1, 32});
  measure(scheduler, 0, Bytes{20} << 30);
  for (TaskIndex task = 1; task < 5; ++task) scheduler.arrive({task, 0, 64, 131072});
  EXPECT_EQ(scheduler.next(), (std::vector<TaskIndex>{0}));
}

TEST(TaskScheduler, TurnsHoldEveryTaskOnce) {
  const std::vector<Bytes> bytes = {6, 5, 4, 3, 2};
  const auto fits = [&](std::span<const TaskIndex> tasks) {
    Bytes total = 0;
    for (const TaskIndex task : tasks) total += bytes[static_cast<std::size_t>(task)];
    return total <= 10;
  };
  const auto turns = admit_in_turns({0, 1, 2, 3, 4}, fits);
  EXPECT_EQ(turns, (std::vector<std::vector<TaskIndex>>{{0, 2}, {1, 3, 4}}));
  EXPECT_EQ(admit_in_turns({1, 0}, [](auto) { return false; }), (std::vector<std::vector<TaskIndex>>{{1}, {0}}));
}

std::vector<Admission> admissions_of_sizes(const std::vector<std::int32_t>& in_order, const std::vector<Bytes>& bytes,
                                           const std::vector<std::int64_t>& windows, Bytes capacity) {
  return admit_at_borders(in_order, windows, [&](std::span<const std::int32_t> htasks) {
    Bytes total = 0;
    for (const std::int32_t htask : htasks) total += bytes[static_cast<std::size_t>(htask)];
    return total <= capacity;
  });
}

TEST(TaskScheduler, WhatWaitsTakesThePlaceOfWhatEnds) {
  // The long one runs throughout; the others beside it, one after another.
  EXPECT_EQ(admissions_of_sizes({0, 1, 2}, {4, 6, 6}, {10, 3, 4}, 10),
            (std::vector<Admission>{{3, {0, 1}}, {4, {0, 2}}, {3, {0}}}));
  // The first in order that did not fit is asked first at the next border, and takes the place of a later one.
  EXPECT_EQ(admissions_of_sizes({2, 1, 0}, {5, 8, 4}, {9, 2, 3}, 10),
            (std::vector<Admission>{{3, {0, 2}}, {2, {1}}, {6, {0}}}));
  EXPECT_EQ(admissions_of_sizes({0, 1}, {20, 30}, {1, 0}, 10), (std::vector<Admission>{{1, {0}}}));
}

TEST(TaskScheduler, AdmissionsKeepToMemoryAndGiveEveryHTaskItsWindows) {
  RandomStream random(7);
  std::int64_t shorter = 0;
  for (int trial = 0; trial < 300; ++trial) {
    const auto count = static_cast<std::int32_t>(1 + random.next_below(8));
    std::vector<std::int32_t> in_order(static_cast<std::size_t>(count));
    std::iota(in_order.begin(), in_order.end(), 0);
    shuffle(std::span(in_order), random);
    std::vector<Bytes> bytes;
    std::vector<std::int64_t> windows;
    for (std::int32_t i = 0; i < count; ++i) {
      bytes.push_back(static_cast<Bytes>(1 + random.next_below(10)));
      windows.push_back(static_cast<std::int64_t>(1 + random.next_below(20)));
    }
    const std::vector<Admission> admissions = admissions_of_sizes(in_order, bytes, windows, 10);
    std::vector<std::int64_t> left = windows;
    std::int64_t taken = 0;
    for (const Admission& admission : admissions) {
      Bytes total = 0;
      for (const std::int32_t htask : admission.htasks) {
        total += bytes[static_cast<std::size_t>(htask)];
        left[static_cast<std::size_t>(htask)] -= admission.windows;
      }
      EXPECT_LE(total, 10);
      EXPECT_GT(admission.windows, 0);
      taken += admission.windows;
    }
    EXPECT_EQ(left, std::vector<std::int64_t>(windows.size(), 0));
    // Nothing waits that would fit beside those that run.
    for (std::size_t i = 0; i < admissions.size(); ++i) {
      Bytes total = 0;
      for (const std::int32_t htask : admissions[i].htasks) total += bytes[static_cast<std::size_t>(htask)];
      for (const std::int32_t htask : in_order) {
        const auto runs = [&](const Admission& admission) {
          return std::count(admission.htasks.begin(), admission.htasks.end(), htask) > 0;
        };
        const bool comes = std::any_of(admissions.begin() + static_cast<std::ptrdiff_t>(i) + 1, admissions.end(), runs);
        EXPECT_TRUE(!comes || runs(admissions[i]) || total + bytes[static_cast<std::size_t>(htask)] > 10);
      }
    }
    std::int64_t in_turns = 0;
    const auto fits = [&](std::span<const TaskIndex> tasks) {
      Bytes total = 0;
      for (const TaskIndex task : tasks) total += bytes[static_cast<std::size_t>(task)];
      return total <= 10;
    };
    for (const std::vector<TaskIndex>& turn : admit_in_turns(in_order, fits)) {
      std::int64_t longest = 0;
      for (const TaskIndex task : turn) longest = std::max(longest, windows[static_cast<std::size_t>(task)]);
      in_turns += longest;
    }
    shorter += taken < in_turns ? 1 : 0;
    EXPECT_LE(taken, in_turns + in_turns / 4) << trial;
  }
  EXPECT_GT(shorter, 100);
}

LearnedHTask learned(TaskIndex htask, std::int64_t priority, std::int64_t length, std::int64_t windows,
                     std::vector<Bytes> peaks, std::int64_t adapter_width = 1) {
  return {{htask, priority, 1, length, adapter_width}, windows, std::move(peaks)};
}

TEST(TaskScheduler, WhatIsLearnedLetsLikeTasksIn) {
  // One step by itself tells what its likes take.
  EXPECT_EQ(
      admit_while_learning(
          std::vector{learned(0, 0, 64, 5, {10}), learned(1, 0, 64, 5, {10}), learned(2, 0, 64, 3, {10})}, {30}, 0),
      (std::vector<Admission>{{1, {0}}, {3, {0, 1, 2}}, {1, {0, 1}}, {1, {1}}}));
  // The second stage has room for two.
  EXPECT_EQ(admit_while_learning(std::vector{learned(0, 0, 64, 2, {10, 4}), learned(1, 0, 64, 2, {10, 4}),
                                             learned(2, 0, 64, 2, {10, 4})},
                                 {30, 8}, 0),
            (std::vector<Admission>{{1, {0}}, {1, {0, 1}}, {1, {1, 2}}, {1, {2}}}));
  // Of a wider adapter it tells that each token takes at most thrice as much: too much at first, and less in truth.
  EXPECT_EQ(admit_while_learning(std::vector{learned(0, 0, 64, 3, {10}, 1), learned(1, 0, 64, 3, {20}, 3)}, {39}, 0),
            (std::vector<Admission>{{3, {0}}, {3, {1}}}));
  EXPECT_EQ(admit_while_learning(std::vector{learned(0, 0, 64, 3, {10}, 1), learned(1, 0, 64, 3, {20}, 3)}, {40}, 0),
            (std::vector<Admission>{{1, {0}}, {2, {0, 1}}, {1, {1}}}));
  // A narrower one takes no more.
  EXPECT_EQ(admit_while_learning(std::vector{learned(0, 0, 64, 2, {10}, 3), learned(1, 0, 64, 2, {8}, 1)}, {20}, 0),
            (std::vector<Admission>{{1, {0}}, {1, {0, 1}}, {1, {1}}}));
  // The urgent one goes first and leaves what it taught.
  EXPECT_EQ(admit_while_learning(std::vector{learned(0, 0, 64, 2, {10}), learned(1, 7, 64, 2, {10})}, {30}, 0),
            (std::vector<Admission>{{1, {1}}, {1, {0, 1}}, {1, {0}}}));
}

TEST(TaskScheduler, LearningKeepsToMemoryAndThenDecidesAsIfAllWereKnown) {
  RandomStream random(11);
  std::int64_t learning = 0;
  for (int trial = 0; trial < 200; ++trial) {
    // Each of two stages with coefficients of its own; of a token something for the backbone and for each rank.
    double base[2], backbone[2], rank[2];
    for (std::size_t s = 0; s < 2; ++s)
      base[s] = 1e3 * random.next_uniform(), backbone[s] = 10 * random.next_uniform(), rank[s] = random.next_uniform();
    std::vector<LearnedHTask> htasks;
    std::vector<Bytes> capacities = {0, 0};
    for (TaskIndex i = 0; i < 2 + static_cast<TaskIndex>(random.next_below(7)); ++i) {
      const auto width = static_cast<std::int64_t>(1 + random.next_below(4));
      const QueuedTask queued{i, 0, 1 + static_cast<std::int64_t>(random.next_below(8)),
                              64 * (1 + static_cast<std::int64_t>(random.next_below(8))), width};
      std::vector<Bytes> peaks;
      for (std::size_t s = 0; s < 2; ++s) {
        const costmodel::MemoryFit truth{base[s], backbone[s] + rank[s] * static_cast<double>(width), 0};
        peaks.push_back(static_cast<Bytes>(truth.bytes(queued.batch, queued.length)));
        capacities[s] = std::max(capacities[s], peaks[s] + peaks[s] / 2);
      }
      htasks.push_back({queued, 1 + static_cast<std::int64_t>(random.next_below(12)), peaks});
    }
    const auto fits = [&](std::span<const std::int32_t> running, double spare) {
      for (std::size_t s = 0; s < 2; ++s) {
        double total = 0;
        for (const std::int32_t htask : running)
          total += static_cast<double>(htasks[static_cast<std::size_t>(htask)].peaks[s]) * (1 + spare) / (1 - spare);
        if (total > static_cast<double>(capacities[s])) return false;
      }
      return true;
    };
    const std::vector<Admission> admissions = admit_while_learning(htasks, capacities);
    std::vector<std::int64_t> left;
    std::vector<std::int32_t> in_order;
    for (const LearnedHTask& htask : htasks) left.push_back(htask.windows), in_order.push_back(htask.queued.task);
    std::set<std::int32_t> ran;
    std::vector<Admission> known;  // from the border on at which all have run
    for (std::size_t i = 0; i < admissions.size(); ++i) {
      EXPECT_TRUE(fits(admissions[i].htasks, 0)) << trial;
      if (ran.size() == htasks.size() && known.empty()) {
        known = admit_at_borders(in_order, left, [&](std::span<const std::int32_t> running) {
          return fits(running, TaskScheduler::kMemoryError);
        });
        EXPECT_EQ(std::vector<Admission>(admissions.begin() + static_cast<std::ptrdiff_t>(i), admissions.end()), known)
            << trial;
      }
      learning += known.empty() ? admissions[i].windows : 0;
      for (const std::int32_t htask : admissions[i].htasks) {
        ran.insert(htask);
        left[static_cast<std::size_t>(htask)] -= admissions[i].windows;
      }
    }
    EXPECT_EQ(left, std::vector<std::int64_t>(htasks.size(), 0)) << trial;
  }
  EXPECT_GT(learning, 200);
}

}  // namespace
}  // namespace braid::planner
