#include "planner/window/packing.h"

#include <algorithm>
#include <numeric>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "support.h"

namespace braid::planner {
namespace {

std::vector<SampleRow> rows_of_lengths(const std::vector<std::int32_t>& lengths) {
  std::vector<workload::SampleRef> samples;
  for (const std::int32_t length : lengths)
    samples.push_back({100 - static_cast<std::int64_t>(samples.size()), length, length - 1});
  return rows_of(3, 7, samples, 0);
}

/// Over all ways to split the rows into a last pack and the rest.
std::int64_t fewest_packs(const std::vector<std::int32_t>& lengths, std::int64_t pack_length) {
  const std::size_t sets = std::size_t{1} << lengths.size();
  std::vector<std::int64_t> tokens(sets, 0), fewest(sets, 0);
  for (std::size_t set = 1; set < sets; ++set) {
    for (std::size_t i = 0; i < lengths.size(); ++i) tokens[set] += (set >> i & 1) != 0 ? lengths[i] : 0;
    fewest[set] = static_cast<std::int64_t>(lengths.size());
    for (std::size_t last = set; last > 0; last = (last - 1) & set) {
      if (tokens[last] <= pack_length) fewest[set] = std::min(fewest[set], fewest[set ^ last] + 1);
    }
  }
  return fewest.back();
}

std::int64_t packs_by_next_fit(const std::vector<std::int32_t>& lengths, std::int64_t pack_length) {
  std::int64_t packs = 0, room = 0;
  for (const std::int32_t length : lengths) {
    if (room < length) ++packs, room = pack_length;
    room -= length;
  }
  return packs;
}

RC_GTEST_PROP(Packing, EveryRowLiesInOnePackInTheOrderOfTheData, ()) {
  const auto lengths = *rc::gen::container<std::vector<std::int32_t>>(rc::gen::inRange(1, 97));
  const auto pack_length = *rc::gen::inRange<std::int64_t>(96, 300);
  const std::vector<SampleRow> rows = rows_of_lengths(lengths);
  std::vector<int> times(rows.size(), 0);
  std::int32_t last_first = -1;
  for (const Pack& pack : pack_samples(rows, pack_length)) {
    RC_ASSERT(!pack.rows.empty());
    RC_ASSERT(pack.task == 3);
    RC_ASSERT(pack.rows.front().index > last_first);
    last_first = pack.rows.front().index;
    std::int64_t tokens = 0;
    std::int32_t last = -1;
    for (const SampleRow& row : pack.rows) {
      RC_ASSERT(row.index > last);
      last = row.index;
      RC_ASSERT(row.padded == lengths[static_cast<std::size_t>(row.index)]);
      RC_ASSERT(row.sample == 100 - row.index);
      ++times[static_cast<std::size_t>(row.index)];
      tokens += row.padded;
    }
    RC_ASSERT(tokens == pack.tokens);
    RC_ASSERT(tokens <= pack_length);
  }
  RC_ASSERT(std::all_of(times.begin(), times.end(), [](int count) { return count == 1; }));
}

RC_GTEST_PROP(Packing, IsAsGoodAsFirstFitDecreasingIsKnownToBe, ()) {
  const auto count = *rc::gen::inRange<std::size_t>(1, 10);
  const auto lengths = *rc::gen::container<std::vector<std::int32_t>>(count, rc::gen::inRange(1, 41));
  const auto pack_length = *rc::gen::inRange<std::int64_t>(40, 90);
  const std::vector<Pack> packs = pack_samples(rows_of_lengths(lengths), pack_length);
  const auto taken = static_cast<std::int64_t>(packs.size());
  const std::int64_t fewest = fewest_packs(lengths, pack_length);
  RC_ASSERT(taken >= fewest);
  RC_ASSERT(9 * taken <= 11 * fewest + 6);
  RC_ASSERT(taken <= packs_by_next_fit(lengths, pack_length));
  for (std::size_t a = 0; a < packs.size(); ++a) {
    for (std::size_t b = 0; b < a; ++b) RC_ASSERT(packs[a].tokens + packs[b].tokens > pack_length);
  }
}

RC_GTEST_PROP(Packing, RowsOfOneLengthFillPacksInOrder, ()) {
  const auto length = *rc::gen::inRange<std::int32_t>(1, 50);
  const auto count = *rc::gen::inRange<std::size_t>(1, 40);
  const auto pack_length = *rc::gen::inRange<std::int64_t>(50, 200);
  const std::vector<SampleRow> rows = rows_of_lengths(std::vector<std::int32_t>(count, length));
  const std::size_t each = static_cast<std::size_t>(pack_length / length);
  const std::vector<Pack> packs = pack_samples(rows, pack_length);
  RC_ASSERT(packs.size() == (count + each - 1) / each);
  for (std::size_t i = 0; i < count; ++i)
    RC_ASSERT(packs[i / each].rows[i % each].index == static_cast<std::int32_t>(i));
}

TEST(Packing, LeavesTheOrderOfTheDataOnlyToSaveAPack) {
  // In order: 5 + 4 | 6 | 5; longest first: 6 + 4 | 5 + 5.
  const std::vector<Pack> saved = pack_samples(rows_of_lengths({5, 4, 6, 5}), 10);
  ASSERT_EQ(saved.size(), 2U);
  EXPECT_EQ(saved[0].rows[1].index, 3);
  // Longest first would join 8 and 1, but saves nothing: 1 + 6 | 8 | 6 | 6.
  const std::vector<Pack> kept = pack_samples(rows_of_lengths({1, 6, 8, 6, 6}), 10);
  ASSERT_EQ(kept.size(), 4U);
  ASSERT_EQ(kept[0].rows.size(), 2U);
  EXPECT_EQ(kept[0].rows[1].index, 1);
}

TEST(Packing, ARowThatIsLongerThanAPackIsRefusedByName) {
  expect_error([] { pack_samples(rows_of_lengths({8, 17}), 16); }, "sample 99 of task 3", "17 tokens", "of 16");
}

TEST(Packing, RowsArePaddedUnlessTheyAreLonger) {
  const std::vector<workload::SampleRef> samples = {{5, 10, 9}, {8, 40, 3}};
  const std::vector<SampleRow> rows = rows_of(2, 4, samples, 32);
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0].padded, 32);
  EXPECT_EQ(rows[1].padded, 40);
  EXPECT_EQ(rows[1].tokens, 40);
  EXPECT_EQ(rows[1].index, 1);
  EXPECT_EQ(rows[1].sample, 8);
  EXPECT_EQ(rows[1].scored, 3);
  EXPECT_EQ(rows[1].task, 2);
  EXPECT_EQ(rows[1].global_batch, 4);
  EXPECT_EQ(rows_of(2, 4, samples, 0)[0].padded, 10);
}

}  // namespace
}  // namespace braid::planner
