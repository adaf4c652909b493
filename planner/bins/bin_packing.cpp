#include "planner/bins/bin_packing.h"

#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "planner/bins/bin_models.h"

namespace braid::planner {
namespace {

/// Items that a search for the best filling of one bin looks at, over and over.
constexpr std::int64_t kMostLooks = 4000;
/// A net for a solver that overruns; nodes end it long before.
constexpr double kPackingSeconds = 60;

std::int64_t padded(std::int64_t tokens, std::int64_t multiple) {
  return (tokens + multiple - 1) / multiple * multiple;
}

std::int32_t adapter_count(std::span<const BinItem> items) {
  std::int32_t count = 0;
  for (const BinItem& item : items) count = std::max(count, item.adapter + 1);
  return count;
}

/// A bin that is being filled.
class OpenBin {
 public:
  OpenBin(std::int32_t adapters, const BinRules& rules)
      : rules_(rules), capacity_(rules.capacity / rules.multiple * rules.multiple) {
    of_adapter_.assign(static_cast<std::size_t>(adapters), 0);
  }

  std::int64_t tokens() const { return tokens_; }
  std::int64_t data() const { return data_; }
  std::int64_t capacity() const { return capacity_; }
  std::int64_t room() const { return capacity_ - tokens_; }
  /// How much fuller the item makes it.
  std::int64_t growth(const BinItem& item) const {
    const std::int64_t before = of_adapter_[static_cast<std::size_t>(item.adapter)];
    return padded(before + item.tokens, rules_.multiple) - padded(before, rules_.multiple);
  }
  bool takes(const BinItem& item) const { return growth(item) <= room(); }
  void add(const BinItem& item) {
    tokens_ += growth(item);
    of_adapter_[static_cast<std::size_t>(item.adapter)] += item.tokens;
    data_ += item.tokens;
  }
  void remove(const BinItem& item) {
    of_adapter_[static_cast<std::size_t>(item.adapter)] -= item.tokens;
    data_ -= item.tokens;
    tokens_ -= growth(item);
  }

 private:
  BinRules rules_;
  std::int64_t capacity_;
  std::vector<std::int64_t> of_adapter_;
  std::int64_t tokens_ = 0, data_ = 0;
};

std::vector<std::int32_t> longest_first(std::span<const BinItem> items) {
  std::vector<std::int32_t> order(items.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) {
    const BinItem &one = items[static_cast<std::size_t>(a)], &other = items[static_cast<std::size_t>(b)];
    return one.tokens != other.tokens ? one.tokens > other.tokens : one.adapter < other.adapter;
  });
  return order;
}

enum class Fit { first, best };

std::vector<Bin> pack_greedily(std::span<const BinItem> items, const BinRules& rules, Fit fit) {
  std::vector<Bin> bins;
  std::vector<OpenBin> open;
  for (const std::int32_t place : longest_first(items)) {
    const BinItem& item = items[static_cast<std::size_t>(place)];
    std::size_t chosen = open.size();
    std::int64_t left = 0;
    for (std::size_t b = 0; b < open.size(); ++b) {
      if (!open[b].takes(item)) continue;
      const std::int64_t room = open[b].room() - open[b].growth(item);
      if (chosen < open.size() && room >= left) continue;
      chosen = b, left = room;
      if (fit == Fit::first) break;
    }
    if (chosen == open.size()) {
      open.emplace_back(adapter_count(items), rules);
      bins.emplace_back();
    }
    open[chosen].add(item);
    bins[chosen].push_back(place);
  }
  return bins;
}

/// Of items in `order` those with the most tokens that a bin takes beside what it has, by a search in depth that ends
/// after kMostLooks.
class Filling {
 public:
  Filling(std::span<const BinItem> items, std::span<const std::int32_t> order, OpenBin& bin)
      : items_(items), order_(order), bin_(bin), left_(order.size() + 1, 0) {
    for (std::size_t i = order.size(); i-- > 0;) left_[i] = left_[i + 1] + item(i).tokens;
  }

  Bin run() {
    most_ = bin_.data();
    look(0);
    return std::move(best_);
  }

 private:
  const BinItem& item(std::size_t i) const { return items_[static_cast<std::size_t>(order_[i])]; }

  void look(std::size_t first) {
    if (bin_.data() > most_) {
      most_ = bin_.data();
      best_ = chosen_;
    }
    for (std::size_t i = first; i < order_.size(); ++i) {
      if (bin_.data() + left_[i] <= most_ || most_ == bin_.capacity()) return;
      // One like it was left out here before.
      if (i > first && item(i) == item(i - 1)) continue;
      if (++looks_ > kMostLooks) return;
      if (!bin_.takes(item(i))) continue;
      bin_.add(item(i));
      chosen_.push_back(order_[i]);
      look(i + 1);
      chosen_.pop_back();
      bin_.remove(item(i));
    }
  }

  std::span<const BinItem> items_;
  std::span<const std::int32_t> order_;
  OpenBin& bin_;
  std::vector<std::int64_t> left_;  // tokens of the items from a place on
  Bin chosen_, best_;
  std::int64_t most_ = 0;
  std::int64_t looks_ = 0;
};

/// Bin by bin the longest item that is left, and what fills the bin best beside it (Gupta and Ho 1999).
std::vector<Bin> pack_fullest_first(std::span<const BinItem> items, const BinRules& rules) {
  std::vector<std::int32_t> left = longest_first(items);
  std::vector<Bin> bins;
  while (!left.empty()) {
    OpenBin open(adapter_count(items), rules);
    open.add(items[static_cast<std::size_t>(left.front())]);
    Bin bin = {left.front()};
    left.erase(left.begin());
    for (const std::int32_t place : Filling(items, left, open).run()) {
      bin.push_back(place);
      left.erase(std::find(left.begin(), left.end(), place));
    }
    bins.push_back(std::move(bin));
  }
  return bins;
}

/// In order, and what is proven of it.
BinPacking described(std::vector<Bin> bins, std::span<const BinItem> items, const BinRules& rules, BinSearch from) {
  std::vector<std::pair<std::int64_t, Bin>> sized;
  for (Bin& bin : bins) {
    std::sort(bin.begin(), bin.end());
    sized.emplace_back(bin_tokens(items, bin, rules), std::move(bin));
  }
  std::stable_sort(sized.begin(), sized.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  BinPacking packing;
  packing.from = from;
  for (auto& [tokens, bin] : sized) packing.bins.push_back(std::move(bin));
  if (!sized.empty()) packing.smallest = sized.back().first;
  const auto count = static_cast<std::int64_t>(sized.size());
  packing.fewest = count == fewest_bins(items, rules);
  packing.emptiest = packing.smallest == emptiest_bin(items, rules, count);
  return packing;
}

bool better(const BinPacking& a, const BinPacking& b) {
  if (a.bins.size() != b.bins.size()) return a.bins.size() < b.bins.size();
  return a.smallest < b.smallest;
}

}  // namespace

std::string_view name(BinSearch search) {
  switch (search) {
    case BinSearch::greedy:
      return "greedy";
    case BinSearch::searched:
      return "searched";
    case BinSearch::solved:
      return "solved";
  }
  return "";
}

std::int64_t bin_tokens(std::span<const BinItem> items, std::span<const std::int32_t> bin, const BinRules& rules) {
  OpenBin open(adapter_count(items), rules);
  for (const std::int32_t place : bin) open.add(items[static_cast<std::size_t>(place)]);
  return open.tokens();
}

std::int64_t fewest_bins(std::span<const BinItem> items, const BinRules& rules) {
  const std::int64_t capacity = rules.capacity / rules.multiple * rules.multiple;
  std::vector<std::int64_t> of_adapter(static_cast<std::size_t>(adapter_count(items)), 0);
  std::vector<std::int64_t> sizes;
  for (const BinItem& item : items) {
    of_adapter[static_cast<std::size_t>(item.adapter)] += item.tokens;
    sizes.push_back(item.tokens);
  }
  std::int64_t tokens = 0;
  for (const std::int64_t mine : of_adapter) tokens += padded(mine, rules.multiple);
  std::int64_t fewest = (tokens + capacity - 1) / capacity;
  std::sort(sizes.begin(), sizes.end());
  // Items of more than capacity - least go into a bin alone, others over half of it at most one to a bin; what lies
  // between `least` and half fits only beside the latter, or into further bins.
  for (std::size_t i = 0; i < sizes.size() && 2 * sizes[i] <= capacity; ++i) {
    const std::int64_t least = sizes[i];
    std::int64_t alone = 0, halves = 0, room = 0, rest = 0;
    for (const std::int64_t size : sizes) {
      if (size > capacity - least) {
        ++alone;
      } else if (2 * size > capacity) {
        ++halves;
        room += capacity - size;
      } else if (size >= least) {
        rest += size;
      }
    }
    const std::int64_t more = rest > room ? (rest - room + capacity - 1) / capacity : 0;
    fewest = std::max(fewest, alone + halves + more);
  }
  const auto over_half =
      std::count_if(sizes.begin(), sizes.end(), [&](std::int64_t size) { return 2 * size > capacity; });
  return std::max(fewest, static_cast<std::int64_t>(over_half));
}

std::int64_t emptiest_bin(std::span<const BinItem> items, const BinRules& rules, std::int64_t bins) {
  if (items.empty()) return 0;
  const std::int64_t capacity = rules.capacity / rules.multiple * rules.multiple;
  std::vector<std::int64_t> of_adapter(static_cast<std::size_t>(adapter_count(items)), 0);
  std::int64_t shortest = items.front().tokens, tokens = 0;
  for (const BinItem& item : items) {
    of_adapter[static_cast<std::size_t>(item.adapter)] += item.tokens;
    shortest = std::min(shortest, item.tokens);
  }
  for (const std::int64_t mine : of_adapter) tokens += padded(mine, rules.multiple);
  return std::max(padded(shortest, rules.multiple), tokens - (bins - 1) * capacity);
}

BinPacking pack_bins(std::span<const BinItem> items, const BinRules& rules, BinSearch search) {
  const std::int64_t capacity = rules.capacity / rules.multiple * rules.multiple;
  for (const BinItem& item : items)
    BRAID_CHECK(item.tokens <= capacity, "an item of {} tokens in bins of {}", item.tokens, capacity);
  BinPacking best = described(pack_greedily(items, rules, Fit::first), items, rules, BinSearch::greedy);
  const BinPacking tight = described(pack_greedily(items, rules, Fit::best), items, rules, BinSearch::greedy);
  if (better(tight, best)) best = tight;
  if (search == BinSearch::greedy || (best.fewest && best.emptiest)) return best;
  BinPacking fullest = described(pack_fullest_first(items, rules), items, rules, BinSearch::searched);
  if (better(fullest, best)) best = std::move(fullest);
  if (search == BinSearch::searched || (best.fewest && best.emptiest)) return best;
  const bool few = static_cast<std::int64_t>(items.size()) <= kFewItems;
  if (best.fewest && !few) return best;
  const milp::Limits limits{few ? kSmallPackingNodes : kPackingNodes, kPackingSeconds, 0};
  SolvedBins solved = solve_bins(best.bins, {!best.fewest, few}, items, rules, limits);
  BinPacking packing = described(std::move(solved.bins), items, rules, BinSearch::solved);
  packing.fewest = packing.fewest || solved.fewest;
  packing.emptiest = packing.emptiest || (packing.fewest && solved.emptiest);
  if (!better(packing, best)) {
    best.fewest = best.fewest || packing.fewest;
    best.emptiest = best.emptiest || packing.emptiest;
    packing = std::move(best);
  }
  packing.truncated = solved.truncated;
  return packing;
}

Bin best_filling(std::span<const BinItem> items, const BinRules& rules, std::span<const BinItem> held,
                 const std::vector<bool>& may_enter) {
  OpenBin open(std::max(adapter_count(items), adapter_count(held)), rules);
  for (const BinItem& item : held) open.add(item);
  std::vector<std::int32_t> order;
  for (const std::int32_t place : longest_first(items)) {
    if (may_enter[static_cast<std::size_t>(place)]) order.push_back(place);
  }
  Bin filling = Filling(items, order, open).run();
  std::sort(filling.begin(), filling.end());
  return filling;
}

}  // namespace braid::planner
