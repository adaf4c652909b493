#include "base/random.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <set>
#include <vector>

#include <gtest/gtest.h>

namespace braid {
namespace {

using Words = std::array<std::uint32_t, 4>;

// The known answers that come with Random123 (philox4x32, 10 rounds).
TEST(Random, PhiloxGivesThePublishedAnswers) {
  EXPECT_EQ(philox({0, 0, 0, 0}, {0, 0}), (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}),
            (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Random, AStreamIsPhiloxAlongItsCounter) {
  const std::uint64_t key = 0x0123456789abcdef;
  RandomStream stream(key);
  for (std::uint32_t counter = 0; counter < 3; ++counter) {
    for (const std::uint32_t word : philox({counter, 0, 0, 0}, {0x89abcdef, 0x01234567})) {
      EXPECT_EQ(stream.next_word(), word);
    }
  }
}

TEST(Random, StreamsDependOnTheirKeyAlone) {
  RandomStream a(1), again(1), other(2);
  int same = 0;
  for (int i = 0; i < 1000; ++i) {
    const std::uint32_t word = a.next_word();
    EXPECT_EQ(again.next_word(), word);
    same += other.next_word() == word;
  }
  EXPECT_LE(same, 1);
}

TEST(Random, DifferentListsMixToDifferentKeys) {
  const std::vector<std::vector<std::uint64_t>> lists = {{},     {0},    {1},    {0, 0},    {0, 1},    {1, 0},
                                                         {1, 1}, {2, 0}, {0, 2}, {0, 0, 0}, {1, 2, 3}, {3, 2, 1}};
  std::set<std::uint64_t> keys;
  for (const auto& list : lists) keys.insert(mix_key(list));
  for (std::uint64_t a = 0; a < 100; ++a) {
    for (std::uint64_t b = 0; b < 100; ++b) keys.insert(mix_key(std::array{a + 7, b + 7}));
  }
  EXPECT_EQ(keys.size(), lists.size() + 10000);
}

TEST(Random, EveryBitOfAWordChangesHalfOfTheKey) {
  double changed = 0;
  for (int bit = 0; bit < 64; ++bit) {
    const std::array<std::uint64_t, 2> plain = {42, 7}, flipped = {42 ^ (std::uint64_t{1} << bit), 7};
    const int bits = std::popcount(mix_key(plain) ^ mix_key(flipped));
    EXPECT_GT(bits, 8) << bit;
    changed += bits;
  }
  EXPECT_NEAR(changed / 64, 32.0, 2.5);
}

TEST(Random, NextBelowStaysBelowAndIsEven) {
  RandomStream stream(3);
  std::array<int, 7> counts{};
  for (int i = 0; i < 70000; ++i) {
    const std::uint64_t number = stream.next_below(7);
    ASSERT_LT(number, 7U);
    ++counts[number];
  }
  for (const int count : counts) EXPECT_NEAR(count, 10000, 500);  // five deviations
  EXPECT_EQ(stream.next_below(1), 0U);
  for (int i = 0; i < 100; ++i) EXPECT_LT(stream.next_below(UINT64_MAX), UINT64_MAX);
}

TEST(Random, UniformFillsTheUnitInterval) {
  RandomStream stream(4);
  constexpr int kCount = 100000;
  double sum = 0, squares = 0, least = 1, most = 0;
  for (int i = 0; i < kCount; ++i) {
    const double number = stream.next_uniform();
    ASSERT_GE(number, 0.0);
    ASSERT_LT(number, 1.0);
    sum += number;
    squares += number * number;
    least = std::min(least, number);
    most = std::max(most, number);
  }
  EXPECT_NEAR(sum / kCount, 0.5, 0.005);
  EXPECT_NEAR(squares / kCount, 1.0 / 3, 0.005);
  EXPECT_LT(least, 1e-3);
  EXPECT_GT(most, 1 - 1e-3);
}

TEST(Random, NormalHasTheMomentsOfTheBell) {
  RandomStream stream(5);
  constexpr int kCount = 200000;
  double sum = 0, squares = 0, fourths = 0;
  for (int i = 0; i < kCount; ++i) {
    const double number = stream.next_normal();
    ASSERT_TRUE(std::isfinite(number));
    sum += number;
    squares += number * number;
    fourths += number * number * number * number;
  }
  EXPECT_NEAR(sum / kCount, 0.0, 0.012);
  EXPECT_NEAR(squares / kCount, 1.0, 0.02);
  EXPECT_NEAR(fourths / kCount, 3.0, 0.15);
}

TEST(Random, ShuffleIsAPermutationThatTheKeyFixes) {
  std::vector<int> order(100), again(100), other(100);
  for (auto* items : {&order, &again, &other}) std::iota(items->begin(), items->end(), 0);
  RandomStream a(6), b(6), c(7);
  shuffle(std::span(order), a);
  shuffle(std::span(again), b);
  shuffle(std::span(other), c);
  EXPECT_EQ(order, again);
  EXPECT_NE(order, other);
  EXPECT_FALSE(std::is_sorted(order.begin(), order.end()));
  std::sort(order.begin(), order.end());
  for (int i = 0; i < 100; ++i) EXPECT_EQ(order[static_cast<std::size_t>(i)], i);
}

TEST(Random, ShuffleGivesEveryOrderAlike) {
  std::array<int, 24> counts{};
  RandomStream stream(8);
  for (int i = 0; i < 24000; ++i) {
    std::array<int, 4> items = {0, 1, 2, 3};
    shuffle(std::span<int>(items), stream);
    std::array<int, 4> sorted = {0, 1, 2, 3};
    std::size_t rank = 0;
    while (sorted != items) {
      std::next_permutation(sorted.begin(), sorted.end());
      ++rank;
    }
    ++counts[rank];
  }
  for (const int count : counts) EXPECT_NEAR(count, 1000, 160);  // five deviations
}

TEST(Random, ShufflingNothingOrOneThingIsFine) {
  RandomStream stream(9);
  std::vector<int> none, one = {5};
  shuffle(std::span(none), stream);
  shuffle(std::span(one), stream);
  EXPECT_EQ(one, std::vector<int>{5});
}

}  // namespace
}  // namespace braid
