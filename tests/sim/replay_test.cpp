#include "sim/replay.h"

#include <algorithm>
#include <map>
#include <tuple>

#include <gtest/gtest.h>

#include "base/random.h"
#include "planner/program/cut.h"
#include "planner/streams.h"

namespace braid {
namespace {

using namespace planner;
using namespace planner::testing;
using Order = planner::testing::Template;

Nanoseconds makespan(const StreamShape& shape, Order order, const Costs& costs) {
  const Program program = lower(schedule_of(shape, order));
  const std::vector<Violation> violations = verify(program, context_of(shape));
  EXPECT_TRUE(violations.empty()) << messages_of(violations);
  return sim::replay(program, durations_of(program, costs)).end();
}

TEST(Replay, EqualsTheClosedFormsOfGpipeWithAndWithoutSendCost) {
  for (int stages = 1; stages <= 8; ++stages) {
    for (int microbatches = 1; microbatches <= 32; ++microbatches) {
      const StreamShape shape{stages, 1, microbatches};
      for (const auto& [forward, backward, send] : {std::tuple<Nanoseconds, Nanoseconds, Nanoseconds>{100, 150, 0},
                                                    {100, 150, 30},
                                                    {100, 150, 120},
                                                    {100, 150, 400}}) {
        const Nanoseconds hops = stages - 1;
        const auto sweep = [&](Nanoseconds compute) {
          return stages * compute + hops * send + (microbatches - 1) * (stages > 1 ? std::max(compute, send) : compute);
        };
        EXPECT_EQ(makespan(shape, Order::gpipe, even_costs(stages, forward, backward, send)),
                  sweep(forward) + sweep(backward))
            << stages << " stages, " << microbatches << " microbatches, send " << send;
      }
    }
  }
}

TEST(Replay, MessagesThatBlockKeepBothTheirEndsFromComputing) {
  for (int stages = 1; stages <= 8; ++stages) {
    for (int microbatches = 1; microbatches <= 32; ++microbatches) {
      StreamShape shape{stages, 1, microbatches};
      shape.blocking_messages = true;
      for (const Nanoseconds send : {0, 30, 400}) {
        // Stages between two others receive and send each microbatch.
        const Nanoseconds hops = stages - 1, messages = std::min<Nanoseconds>(hops, 2);
        const auto sweep = [&](Nanoseconds compute) {
          return stages * compute + hops * send + (microbatches - 1) * (compute + messages * send);
        };
        EXPECT_EQ(makespan(shape, Order::gpipe, even_costs(stages, 100, 150, send)), sweep(100) + sweep(150))
            << stages << " stages, " << microbatches << " microbatches, send " << send;
      }
    }
  }
}

TEST(Replay, EqualsTheClosedFormOf1F1BWithoutSendCost) {
  for (int stages = 1; stages <= 8; ++stages) {
    for (int microbatches = 1; microbatches <= 32; ++microbatches) {
      EXPECT_EQ(makespan({stages, 1, microbatches}, Order::one_forward_one_backward, even_costs(stages, 100, 150, 0)),
                (microbatches + stages - 1) * 250)
          << stages << " stages, " << microbatches << " microbatches";
    }
  }
}

/// The longest path through 1F1B's dependencies, from the definitions alone: no Program, no streams, just who needs
/// whom.
class LongestPath {
 public:
  LongestPath(int stages, int microbatches, Costs costs)
      : stages_(stages), microbatches_(microbatches), costs_(std::move(costs)) {
    for (int s = 0; s < stages; ++s) {
      int forwards = 0, backwards = 0;
      std::vector<Work>& work = order_.emplace_back();
      while (backwards < microbatches) {
        const bool warm = forwards < std::min(microbatches, stages - s) ||
                          (forwards < microbatches && forwards - backwards < stages - s);
        if (warm)
          work.push_back({true, forwards++});
        else
          work.push_back({false, backwards++});
      }
    }
  }

  Nanoseconds length() {
    Nanoseconds end = 0;
    for (int s = 0; s < stages_; ++s) {
      for (std::size_t i = 0; i < order_[static_cast<std::size_t>(s)].size(); ++i)
        end = std::max(end, computed(s, static_cast<int>(i)));
      for (int i = 0; i < sends(s); ++i) end = std::max(end, sent(s, i));
    }
    return end;
  }

 private:
  struct Work {
    bool forward;
    int microbatch;
  };

  bool sends_on(int s, const Work& work) const { return work.forward ? s + 1 < stages_ : s > 0; }
  int sends(int s) const {
    const auto& work = order_[static_cast<std::size_t>(s)];
    return static_cast<int>(std::count_if(work.begin(), work.end(), [&](const Work& w) { return sends_on(s, w); }));
  }
  int place(int s, bool forward, int microbatch) const {
    const auto& work = order_[static_cast<std::size_t>(s)];
    return static_cast<int>(
        std::find_if(work.begin(), work.end(),
                     [&](const Work& w) { return w.forward == forward && w.microbatch == microbatch; }) -
        work.begin());
  }
  /// The end of the send of the i-th sending work of the stage.
  Nanoseconds sent(int s, int i) {
    if (i < 0) return 0;
    const auto known = sent_.find({s, i});
    if (known != sent_.end()) return known->second;
    int seen = -1, position = 0;
    for (;; ++position) {
      if (sends_on(s, order_[static_cast<std::size_t>(s)][static_cast<std::size_t>(position)]) && ++seen == i) break;
    }
    return sent_[{s, i}] = std::max(computed(s, position), sent(s, i - 1)) + costs_.send;
  }
  Nanoseconds arrival(int from, bool forward, int microbatch) {
    const int position = place(from, forward, microbatch);
    int ordinal = -1;
    for (int p = 0; p <= position; ++p)
      ordinal += sends_on(from, order_[static_cast<std::size_t>(from)][static_cast<std::size_t>(p)]) ? 1 : 0;
    return sent(from, ordinal);
  }
  Nanoseconds computed(int s, int i) {
    if (i < 0) return 0;
    const auto known = computed_.find({s, i});
    if (known != computed_.end()) return known->second;
    const Work work = order_[static_cast<std::size_t>(s)][static_cast<std::size_t>(i)];
    Nanoseconds start = computed(s, i - 1);
    if (work.forward && s > 0) start = std::max(start, arrival(s - 1, true, work.microbatch));
    if (!work.forward && s + 1 < stages_) start = std::max(start, arrival(s + 1, false, work.microbatch));
    return computed_[{s, i}] = start + (work.forward ? costs_.forward : costs_.backward)[static_cast<std::size_t>(s)];
  }

  int stages_;
  int microbatches_;
  Costs costs_;
  std::vector<std::vector<Work>> order_;
  std::map<std::pair<int, int>, Nanoseconds> sent_, computed_;
};

TEST(Replay, EqualsTheLongestPathOf1F1BWithSendCostAndUnequalStages) {
  RandomStream random(7);
  for (int stages = 1; stages <= 8; ++stages) {
    for (int microbatches = 1; microbatches <= 32; ++microbatches) {
      Costs costs;
      for (int s = 0; s < stages; ++s) {
        costs.forward.push_back(50 + static_cast<Nanoseconds>(random.next_below(100)));
        costs.backward.push_back(50 + static_cast<Nanoseconds>(random.next_below(150)));
      }
      for (const Nanoseconds send : {0, 20, 90, 300}) {
        costs.send = send;
        EXPECT_EQ(makespan({stages, 1, microbatches}, Order::one_forward_one_backward, costs),
                  LongestPath(stages, microbatches, costs).length())
            << stages << " stages, " << microbatches << " microbatches, send " << send;
      }
    }
  }
}

Costs uneven_costs(int stages) {
  Costs costs;
  for (int s = 0; s < stages; ++s) {
    costs.forward.push_back(100 + 7 * s);
    costs.backward.push_back(140 - 5 * s);
  }
  costs.send = 35;
  costs.norm = 20;
  costs.step = 11;
  costs.sync = 40;
  return costs;
}

TEST(Replay, TwoChainedSlicesOfAnEndlessStreamEqualOneLongOne) {
  int with_live = 0, with_message = 0, with_partial = 0;
  for (const bool clips : {false, true}) {
    for (const int replicas : {1, 2}) {
      const StreamShape shape{4, 3, 3, 5, clips, replicas};
      const Program whole = lower(schedule_of(shape, Order::one_forward_one_backward));
      const Costs costs = uneven_costs(shape.stages);
      const std::vector<Violation> violations = verify(whole, context_of(shape));
      ASSERT_TRUE(violations.empty()) << messages_of(violations);
      Clocks at_once;
      const Timeline expected = sim::replay(whole, durations_of(whole, costs), &at_once);
      for (std::int64_t batch = 0; batch + 1 < shape.rounds; ++batch) {
        const auto [first, second] = cut(whole, end_of_round(whole, batch));
        for (const Program* slice : {&first, &second}) {
          const std::vector<Violation> broken = verify(*slice, context_of(shape));
          EXPECT_TRUE(broken.empty()) << messages_of(broken);
        }
        EXPECT_EQ(first.after, second.before);
        for (const StageBoundary& stage : first.after.stages) {
          with_live += stage.live.empty() ? 0 : 1;
          with_partial += stage.gradients.empty() ? 0 : 1;
        }
        for (const auto& messages : first.after.messages) with_message += messages.empty() ? 0 : 1;
        Clocks clocks;
        std::vector<Event> events = sim::replay(first, durations_of(first, costs), &clocks).events;
        const std::vector<Event> rest = sim::replay(second, durations_of(second, costs), &clocks).events;
        events.insert(events.end(), rest.begin(), rest.end());
        std::stable_sort(events.begin(), events.end(), [](const Event& a, const Event& b) {
          return std::tuple(a.stage, a.instruction) < std::tuple(b.stage, b.instruction);
        });
        EXPECT_EQ(events, expected.events);
        EXPECT_EQ(clocks, at_once);
      }
    }
  }
  EXPECT_GT(with_live, 0);
  EXPECT_GT(with_message, 0);
  EXPECT_GT(with_partial, 0);
}

TEST(Replay, AClippingTaskDoesNotIdleTheLastStage) {
  for (const int stages : {2, 4, 8}) {
    const StreamShape shape{stages, 3, stages, 6, true};
    const Program program = lower(schedule_of(shape, Order::one_forward_one_backward));
    Costs costs = even_costs(stages, 100, 100, 0);
    costs.norm = 20;
    const Timeline timeline = sim::replay(program, durations_of(program, costs));
    Nanoseconds free = -1;
    for (const Event& event : timeline.events) {
      if (event.stage != stages - 1 || event.stream != Stream::compute) continue;
      // Only the Steps at the stream's end, where no work is left to hide behind, may wait.
      const bool last_round =
          event.kind == Kind::step &&
          event.instruction + shape.tasks >= static_cast<InstructionId>(program.stages.back().instructions.size());
      if (free >= 0 && !last_round) {
        EXPECT_EQ(event.start, free) << stages << " stages, " << name(event.kind);
      }
      free = event.end;
    }
  }
}

TEST(Replay, ASliceWithoutClocksStartsAtZeroWithItsMessagesThere) {
  const Program whole = lower(schedule_of({2, 1, 2}, Template::gpipe));
  const auto [first, second] = cut(whole, {4, 0});
  ASSERT_FALSE(second.before.messages[0].empty());
  const Timeline timeline = sim::replay(second, durations_of(second, even_costs(2, 10, 20, 3)));
  EXPECT_EQ(timeline.begin(), 0);
  EXPECT_GT(timeline.end(), 0);
}

}  // namespace
}  // namespace braid
