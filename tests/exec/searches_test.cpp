#include "exec/searches.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "base/random.h"

namespace braid::exec {
namespace {

using planner::TaskIndex;

struct Study {
  Study(std::int64_t trials, std::int64_t steps, std::int64_t halving, std::int64_t keep, std::int64_t at_once = 0) {
    std::vector<std::vector<workload::SampleSize>> sizes;
    for (std::int64_t i = 0; i < trials + 1; ++i) {
      workload::Task& task = workload.tasks.emplace_back();
      task.name = "t" + std::to_string(i);
      task.global_batch_size = 1;
      task.steps = steps + i % 2;                                                   // trials may be of unlike lengths
      if (i < trials) task.search = workload::Search{"s", halving, keep, at_once};  // the last is in none
      sizes.push_back({{4, 3}});
    }
    samples.emplace(workload.tasks, std::move(sizes));
  }

  workload::Workload workload;
  std::optional<workload::SampleIndex> samples;
};

TEST(Searches, FewerGoOnAfterEachRung) {
  EXPECT_EQ(Searches::survivors(27, 3, 1), (std::vector<std::int64_t>{27, 9, 3, 1}));
  EXPECT_EQ(Searches::survivors(6, 3, 2), (std::vector<std::int64_t>{6, 2}));
  EXPECT_EQ(Searches::survivors(7, 3, 2), (std::vector<std::int64_t>{7, 3, 2}));
  EXPECT_EQ(Searches::survivors(3, 2, 3), (std::vector<std::int64_t>{3}));
}

/// Of R rungs the i-th is at steps / halving^(R - i), rounded up, so that each spends about as many steps as the next.
TEST(Searches, RungsAreSharesOfATrialsSteps) {
  const Study study(27, 100, 3, 1);
  const Searches searches(study.workload, *study.samples);
  EXPECT_TRUE(std::ranges::equal(searches.rungs(0), std::array{4, 12, 34}));
  EXPECT_TRUE(searches.rungs(27).empty());
  EXPECT_EQ(searches.rung_until(0, 3), 0);
  EXPECT_EQ(searches.rung_until(0, 33), 12);
  EXPECT_EQ(searches.rung_until(0, 100), 34);
}

/// Trials are run round by round as the paper's algorithm has it, each rung told of all its trials at once; what the
/// searches tell from the losses alone, whoever was evaluated first, is the same.
TEST(Searches, EndWhomSuccessiveHalvingEnds) {
  RandomStream random(5);
  for (int round = 0; round < 300; ++round) {
    const auto trials = static_cast<std::int64_t>(2 + random.next_below(20));
    const auto halving = static_cast<std::int64_t>(2 + random.next_below(3));
    const auto keep = static_cast<std::int64_t>(1 + random.next_below(static_cast<std::uint64_t>(trials - 1)));
    const Study study(trials, 40 + static_cast<std::int64_t>(random.next_below(60)), halving, keep);
    const Searches searches(study.workload, *study.samples);

    // By the paper.
    std::vector<std::vector<Evaluated>> evaluations(static_cast<std::size_t>(trials) + 1);
    EndedTasks ended;
    std::set<TaskIndex> expected;
    std::vector<TaskIndex> running;
    for (TaskIndex task = 0; task < trials; ++task) running.push_back(task);
    for (std::size_t rung = 0; std::ssize(running) > keep; ++rung) {
      std::vector<std::pair<double, TaskIndex>> results;
      for (const TaskIndex task : running) {
        std::vector<Evaluated>& told = evaluations[static_cast<std::size_t>(task)];
        const std::int64_t step = searches.rungs(task)[rung];
        double loss = static_cast<double>(random.next_below(6));  // equals are common
        if (random.next_uniform() < 0.1) loss = std::nan("");
        if (!ended.contains(task) && random.next_uniform() < 0.1) {
          ended[task] = random.next_uniform() < 0.5 ? Ended::diverged : Ended::early;
          if (ended[task] == Ended::early) told.push_back({step - 1, loss});
        }
        if (!ended.contains(task)) told.push_back({step, loss});
        // What ended is judged by the best until then; a rung it has come to by what it was there.
        double best = std::numeric_limits<double>::infinity();
        if (!ended.contains(task)) {
          best = std::isfinite(loss) ? loss : best;
        } else if (ended[task] == Ended::early) {
          for (const Evaluated& one : told) best = std::isfinite(one.loss) ? std::min(best, one.loss) : best;
        }
        results.emplace_back(best, task);
        // While one has not been judged nobody ends.
        if (task == running.front() && running.size() > 1 && !ended.contains(running.back())) {
          EXPECT_EQ(searches.outranked(evaluations, ended), expected) << "round " << round;
        }
      }
      std::ranges::stable_sort(results, {}, [](const auto& one) { return one.first; });
      const auto stay = std::max(keep, (std::ssize(running) + halving - 1) / halving);
      running.clear();
      for (std::int64_t place = 0; place < std::ssize(results); ++place) {
        const TaskIndex task = results[static_cast<std::size_t>(place)].second;
        place < stay ? running.push_back(task) : (void)expected.insert(task);
      }
      std::ranges::sort(running);
      // Those that ended before may be told of sooner: nothing is left to wait for.
      const auto running_of = [&](std::set<TaskIndex> tasks) {
        for (const auto& [task, how] : ended) tasks.erase(task);
        return tasks;
      };
      EXPECT_EQ(running_of(searches.outranked(evaluations, ended)), running_of(expected)) << "round " << round;
    }
    EXPECT_EQ(std::ssize(expected), trials - std::min(keep, trials));
  }
}

/// A run that trains a few trials at once, the others of which wait, ends the very trials that one of all of them ends:
/// what a trial is judged by is its own.
TEST(Searches, OfAFewAtOnceEndTheSame) {
  RandomStream random(6);
  for (int round = 0; round < 300; ++round) {
    const auto trials = static_cast<std::int64_t>(2 + random.next_below(15));
    const auto halving = static_cast<std::int64_t>(2 + random.next_below(3));
    const auto keep = static_cast<std::int64_t>(1 + random.next_below(static_cast<std::uint64_t>(trials - 1)));
    const auto at_once = static_cast<std::int64_t>(1 + random.next_below(5));
    const auto steps = static_cast<std::int64_t>(20 + random.next_below(40));
    std::map<std::pair<TaskIndex, std::int64_t>, double> losses;
    const auto loss = [&](TaskIndex task, std::int64_t step) {
      const auto [found, fresh] = losses.try_emplace({task, step}, 0.0);
      if (fresh) found->second = static_cast<double>(random.next_below(8));
      return found->second;
    };
    std::vector<std::int64_t> diverges;  // after so many steps
    for (std::int64_t i = 0; i < trials + 1; ++i)
      diverges.push_back(random.next_uniform() < 0.1 ? static_cast<std::int64_t>(random.next_below(30)) : 1000);

    const auto ends_of = [&](std::int64_t few) {
      const Study study(trials, steps, halving, keep, few);
      const Searches searches(study.workload, *study.samples);
      std::vector<std::vector<Evaluated>> evaluations(static_cast<std::size_t>(trials) + 1);
      std::vector<std::int64_t> taken(static_cast<std::size_t>(trials) + 1, 0);
      EndedTasks ended;
      std::set<TaskIndex> training;
      for (;;) {
        for (const TaskIndex task : searches.outranked(evaluations, ended)) ended.try_emplace(task, Ended::outranked);
        std::set<TaskIndex> able;
        for (TaskIndex task = 0; task <= trials; ++task)
          if (!ended.contains(task) && taken[static_cast<std::size_t>(task)] < study.samples->steps(task))
            able.insert(task);
        const std::set<TaskIndex> before = training, held = searches.held(evaluations, ended);
        training = searches.placed(able, before, evaluations, ended);
        if (training.empty()) {
          EXPECT_TRUE(able.empty()) << "nobody waits for ever";
          break;
        }
        if (few == 0) {
          EXPECT_EQ(training, able);
          EXPECT_TRUE(held.empty());
        } else {
          EXPECT_LE(std::ssize(training), few + (able.contains(trials) ? 1 : 0));
          for (const TaskIndex task : before)
            EXPECT_TRUE(!able.contains(task) || held.contains(task) || training.contains(task)) << "keeps its place";
        }
        for (const TaskIndex task : training) {
          EXPECT_FALSE(held.contains(task));
          const std::int64_t step = ++taken[static_cast<std::size_t>(task)];
          if (step > diverges[static_cast<std::size_t>(task)]) {
            ended[task] = Ended::diverged;
          } else if (searches.rung_until(task, step) == step) {
            evaluations[static_cast<std::size_t>(task)].push_back({step, loss(task, step)});
          }
        }
      }
      return std::pair(ended, taken);
    };
    const auto all = ends_of(0), few = ends_of(at_once);
    // What nobody waits for may go past its rung, and diverge there, before it is told that it is outranked.
    EXPECT_TRUE(
        std::ranges::equal(few.first, all.first, {}, &EndedTasks::value_type::first, &EndedTasks::value_type::first))
        << "round " << round;
    if (std::ranges::all_of(diverges, [](std::int64_t step) { return step == 1000; })) {
      EXPECT_LE(few.second, all.second) << "nobody goes past its rung before it is judged";
    }
  }
}

/// What is planned first is what has places first.
TEST(Searches, TheFirstTasksHaveThePlaces) {
  const Study study(5, 20, 2, 1, 3);
  const Searches searches(study.workload, *study.samples);
  const std::vector<std::vector<Evaluated>> none(6);
  EXPECT_EQ(searches.placed({0, 1, 2, 3, 4, 5}, {}, none, {}), (std::set<TaskIndex>{0, 1, 2, 5}));
  EXPECT_EQ(workload::first_tasks(study.workload), (std::vector<std::size_t>{0, 1, 2, 5}));
}

}  // namespace
}  // namespace braid::exec
