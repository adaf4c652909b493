#include "planner/bins/bin_packing.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "base/random.h"
#include "planner/bins/bin_models.h"

namespace braid::planner {
namespace {

struct BinCase {
  std::vector<BinItem> items;
  BinRules rules;
};

BinCase any_case(int most_items) {
  BinCase one;
  one.rules.multiple = *rc::gen::element(1, 4, 16);
  one.rules.capacity = *rc::gen::inRange(static_cast<int>(one.rules.multiple) + 20, 120);
  const std::int64_t capacity = one.rules.capacity / one.rules.multiple * one.rules.multiple;
  const int items = *rc::gen::inRange(1, most_items + 1), adapters = *rc::gen::inRange(1, 4);
  for (int i = 0; i < items; ++i)
    one.items.push_back({*rc::gen::inRange(0, adapters), *rc::gen::inRange<std::int64_t>(1, capacity + 1)});
  return one;
}

/// Of all partitions of the items into bins that hold them: the fewest bins, and of these the emptiest one.
struct Best {
  std::size_t bins = std::numeric_limits<std::size_t>::max();
  std::int64_t smallest = 0;
};

void try_all(const BinCase& one, std::size_t next, std::vector<Bin>& bins, Best& best) {
  if (bins.size() > best.bins) return;
  if (next == one.items.size()) {
    std::int64_t smallest = std::numeric_limits<std::int64_t>::max();
    for (const Bin& bin : bins) smallest = std::min(smallest, bin_tokens(one.items, bin, one.rules));
    if (bins.size() < best.bins || smallest < best.smallest) best = {bins.size(), smallest};
    return;
  }
  const std::int64_t capacity = one.rules.capacity / one.rules.multiple * one.rules.multiple;
  for (std::size_t b = 0; b <= bins.size(); ++b) {
    if (b == bins.size()) bins.emplace_back();
    bins[b].push_back(static_cast<std::int32_t>(next));
    if (bin_tokens(one.items, bins[b], one.rules) <= capacity) try_all(one, next + 1, bins, best);
    bins[b].pop_back();
    if (bins[b].empty()) {
      bins.pop_back();
      break;
    }
  }
}

Best best_of_all(const BinCase& one) {
  Best best;
  std::vector<Bin> bins;
  try_all(one, 0, bins, best);
  return best;
}

void check_partition(const BinCase& one, const BinPacking& packing) {
  std::vector<int> times(one.items.size(), 0);
  std::int64_t before = std::numeric_limits<std::int64_t>::max();
  for (const Bin& bin : packing.bins) {
    RC_ASSERT(!bin.empty());
    for (const std::int32_t place : bin) ++times[static_cast<std::size_t>(place)];
    const std::int64_t tokens = bin_tokens(one.items, bin, one.rules);
    RC_ASSERT(tokens <= one.rules.capacity);
    RC_ASSERT(tokens <= before);
    before = tokens;
  }
  RC_ASSERT(std::all_of(times.begin(), times.end(), [](int count) { return count == 1; }));
  RC_ASSERT(packing.smallest == before);
}

RC_GTEST_PROP(BinPacking, IsBetweenItsBoundsAndTheBestOfAll, ()) {
  const BinCase one = any_case(8);
  const Best best = best_of_all(one);
  RC_ASSERT(fewest_bins(one.items, one.rules) <= static_cast<std::int64_t>(best.bins));
  RC_ASSERT(emptiest_bin(one.items, one.rules, static_cast<std::int64_t>(best.bins)) <= best.smallest);
  for (const BinSearch search : {BinSearch::greedy, BinSearch::searched, BinSearch::solved}) {
    const BinPacking packing = pack_bins(one.items, one.rules, search);
    check_partition(one, packing);
    if (search == BinSearch::solved) RC_ASSERT(packing.fewest && packing.emptiest);
    RC_ASSERT(packing.bins.size() >= best.bins);
    if (packing.bins.size() == best.bins) RC_ASSERT(packing.smallest >= best.smallest);
    if (packing.fewest) RC_ASSERT(packing.bins.size() == best.bins);
    if (packing.fewest && packing.emptiest) RC_ASSERT(packing.smallest == best.smallest);
  }
}

RC_GTEST_PROP(BinPacking, SearchedIsNeverWorseThanGreedy, ()) {
  const BinCase one = any_case(60);
  const BinPacking greedy = pack_bins(one.items, one.rules, BinSearch::greedy);
  const BinPacking searched = pack_bins(one.items, one.rules, BinSearch::searched);
  check_partition(one, greedy);
  check_partition(one, searched);
  RC_ASSERT(searched.bins.size() <= greedy.bins.size());
  if (searched.bins.size() == greedy.bins.size()) RC_ASSERT(searched.smallest <= greedy.smallest);
}

RC_GTEST_PROP(BinPacking, FillsABinWithWhatMayEnterAlone, ()) {
  const BinCase one = any_case(12);
  std::vector<bool> may_enter;
  std::vector<BinItem> held = {one.items.front()};
  for (std::size_t i = 0; i < one.items.size(); ++i) may_enter.push_back(i > 0 && *rc::gen::arbitrary<bool>());
  const Bin filling = best_filling(one.items, one.rules, held, may_enter);
  const auto fill_of = [&](const Bin& bin) {
    Bin all = {0};
    all.insert(all.end(), bin.begin(), bin.end());
    return all;
  };
  const auto data_of = [&](const Bin& bin) {
    std::int64_t data = 0;
    for (const std::int32_t place : bin) data += one.items[static_cast<std::size_t>(place)].tokens;
    return data;
  };
  for (const std::int32_t place : filling) RC_ASSERT(may_enter[static_cast<std::size_t>(place)]);
  const std::int64_t capacity = one.rules.capacity / one.rules.multiple * one.rules.multiple;
  RC_ASSERT(bin_tokens(one.items, fill_of(filling), one.rules) <= capacity);
  // So few that all subsets are looked at.
  for (std::uint32_t chosen = 0; chosen < (1u << one.items.size()); ++chosen) {
    Bin subset;
    for (std::size_t i = 0; i < one.items.size(); ++i) {
      if ((chosen >> i & 1) != 0 && may_enter[i]) subset.push_back(static_cast<std::int32_t>(i));
    }
    if (bin_tokens(one.items, fill_of(subset), one.rules) <= capacity) RC_ASSERT(data_of(subset) <= data_of(filling));
  }
}

RC_GTEST_PROP(BinModels, BothStagesAloneFindTheBestOfAll, ()) {
  const BinCase one = any_case(6);
  const Best best = best_of_all(one);
  // From as many bins as there are items.
  std::vector<Bin> alone;
  for (std::size_t i = 0; i < one.items.size(); ++i) alone.push_back({static_cast<std::int32_t>(i)});
  const SolvedBins solved = solve_bins(alone, {}, one.items, one.rules, {});
  RC_ASSERT(solved.fewest && solved.emptiest && !solved.truncated);
  RC_ASSERT(solved.bins.size() == best.bins);
  RC_ASSERT(bin_tokens(one.items, solved.bins.back(), one.rules) == best.smallest);
  const auto bins = static_cast<std::int64_t>(best.bins);
  for (const milp::Model& model :
       {fewest_bins_model(one.items, one.rules, bins + 1), emptiest_bin_model(one.items, one.rules, bins)}) {
    const std::vector<double> values = values_of(solved.bins, one.items, one.rules, model, bins);
    RC_ASSERT(model.holds(values));
    RC_ASSERT(packing_of(values, one.items, bins).size() == solved.bins.size());
  }
}

/// Batches as LoRAFusion packs them: 4 adapters of unlike lengths, 64 samples, bins of 8,192 tokens, P = 64.
TEST(BinPacking, OfUsualBatchesIsMostlyProvenToHaveTheFewestBins) {
  int proven = 0, fewer = 0, emptier = 0, solved_fewer = 0, solved_proven = 0;
  constexpr int kBatches = 100;
  RandomStream random(7);
  for (int batch = 0; batch < kBatches; ++batch) {
    BinCase one;
    one.rules = {8192, 64};
    for (std::int32_t adapter = 0; adapter < 4; ++adapter) {
      const double mean = 300.0 * (1 << adapter);
      for (int i = 0; i < 16; ++i) {
        const double drawn = mean * std::exp(0.6 * random.next_normal());
        one.items.push_back({adapter, std::clamp<std::int64_t>(std::llround(drawn), 16, 8192)});
      }
    }
    const BinPacking greedy = pack_bins(one.items, one.rules, BinSearch::greedy);
    const BinPacking searched = pack_bins(one.items, one.rules, BinSearch::searched);
    const BinPacking solved = pack_bins(one.items, one.rules, BinSearch::solved);
    EXPECT_LE(solved.bins.size(), searched.bins.size());
    solved_fewer += solved.bins.size() < searched.bins.size() ? 1 : 0;
    solved_proven += solved.fewest ? 1 : 0;
    proven += searched.fewest ? 1 : 0;
    fewer += searched.bins.size() < greedy.bins.size() ? 1 : 0;
    emptier += searched.bins.size() == greedy.bins.size() && searched.smallest < greedy.smallest ? 1 : 0;
  }
  RecordProperty("proven", proven);
  std::printf(
      "of %d batches %d are proven to have the fewest bins; searching saved a bin in %d, and emptied the last in %d\n",
      kBatches, proven, fewer, emptier);
  std::printf("solving saved another bin in %d; %d are proven then\n", solved_fewer, solved_proven);
  EXPECT_GE(solved_proven, proven);
  EXPECT_GE(proven, kBatches * 95 / 100);
}

}  // namespace
}  // namespace braid::planner
