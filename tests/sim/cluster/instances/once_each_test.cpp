#include "sim/cluster/instances/once_each.h"

#include <atomic>
#include <stdexcept>
#include <thread>

#include <gtest/gtest.h>

namespace braid::sim {
namespace {

TEST(OnceEach, ManyThreadsGetWhatOneMade) {
  constexpr int kThreads = 8, kSets = 200;
  OnceEach<int> answers;
  std::atomic<int> made = 0;
  std::vector<std::thread> threads;
  std::vector<int> sums(kThreads, 0);
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&, thread] {
      for (int i = 0; i < kSets; ++i) {
        const int set = (thread % 2 == 0 ? i : kSets - 1 - i);
        sums[static_cast<std::size_t>(thread)] += answers.of({set, 1}, [&] { return ++made, set; });
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(made, kSets);
  for (const int sum : sums) EXPECT_EQ(sum, kSets * (kSets - 1) / 2);
}

TEST(OnceEach, AFailureIsTheAnswerOfAll) {
  OnceEach<int> answers;
  const auto fail = []() -> int { throw std::runtime_error("no such set"); };
  EXPECT_THROW(answers.of({1}, fail), std::runtime_error);
  EXPECT_THROW(answers.of({1}, [] { return 1; }), std::runtime_error);
}

}  // namespace
}  // namespace braid::sim
