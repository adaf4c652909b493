#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

// Samples of several adapters in bins of one capacity (LoRAFusion §5.2, Eq. 3 and 4). In a bin the tokens of each
// adapter are padded to a multiple of P, as a tile of the kernels is of one adapter.
namespace braid::planner {

struct BinItem {
  std::int32_t adapter = 0;
  std::int64_t tokens = 0;
  bool operator==(const BinItem&) const = default;
};

struct BinRules {
  std::int64_t capacity = 0;  ///< tokens of a bin with its padding; whole multiples of it are used
  std::int64_t multiple = 1;  ///< P
};

using Bin = std::vector<std::int32_t>;  ///< places of items, ascending

/// How hard a packing is looked for.
enum class BinSearch {
  greedy,    ///< first fit and best fit, longest first
  searched,  ///< bin by bin what fills it best, where greedy packings are not proven the best
  solved,    ///< as mixed-integer programs (bin_models.h), what then is not proven either
};
/// Nodes of a program of LoRAFusion's first stage, and of either stage where there are at most kFewItems: with more of
/// them the second is not asked, as for batches of 64 samples CBC neither improved nor proved one in twenty nodes,
/// which took it 1.2 s.
inline constexpr std::int64_t kPackingNodes = 20, kSmallPackingNodes = 2000, kFewItems = 24;
std::string_view name(BinSearch search);

/// Which of them a packing is from.
struct BinPacking {
  std::vector<Bin> bins;      ///< by falling tokens
  std::int64_t smallest = 0;  ///< tokens of the last, padding included; 0: no bins
  bool fewest = false;        ///< proven: no packing has fewer bins
  bool emptiest = false;      ///< proven: none of as many bins leaves one emptier
  bool truncated = false;     ///< a solver ran out of seconds, and may end otherwise in another run
  BinSearch from = BinSearch::greedy;
};

/// Tokens of the items in one bin, padding included.
std::int64_t bin_tokens(std::span<const BinItem> items, std::span<const std::int32_t> bin, const BinRules& rules);

/// No packing has fewer bins: padded tokens over capacity, and Martello and Toth's L2 (1990), by which items over half
/// a bin take one each.
std::int64_t fewest_bins(std::span<const BinItem> items, const BinRules& rules);
/// In none of so many bins are fewer tokens than this.
std::int64_t emptiest_bin(std::span<const BinItem> items, const BinRules& rules, std::int64_t bins);

/// As few bins as are found and of these packings one with the emptiest bin. Every item is in one bin. Deterministic.
/// Throws Error (a check) where an item is larger than a bin.
BinPacking pack_bins(std::span<const BinItem> items, const BinRules& rules, BinSearch search);

/// Items that fill up a bin best which holds `held` of them, of those that `may_enter`; their places, ascending.
Bin best_filling(std::span<const BinItem> items, const BinRules& rules, std::span<const BinItem> held,
                 const std::vector<bool>& may_enter);

}  // namespace braid::planner
