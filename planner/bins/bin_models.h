#pragma once

#include "planner/bins/bin_packing.h"
#include "planner/milp/solve.h"

// Packing as mixed-integer programs (LoRAFusion §5.2, algorithm 1). Items of one adapter and length are one class, and
// bins take numbers of each, so that no two solutions differ by like items alone.
namespace braid::planner {

/// How many bins are needed, of up to so many (Eq. 3): item classes in bins of which the first ones are used.
milp::Model fewest_bins_model(std::span<const BinItem> items, const BinRules& rules, std::int64_t bins);

/// How few tokens, padding included, the last of exactly so many bins has (Eq. 4). There is no big-M: any bin may be
/// the last.
milp::Model emptiest_bin_model(std::span<const BinItem> items, const BinRules& rules, std::int64_t bins);

/// A packing as values of either model of as many bins, or more.
std::vector<double> values_of(std::span<const Bin> packing, std::span<const BinItem> items, const BinRules& rules,
                              const milp::Model& model, std::int64_t bins);
/// The packing of a solution of either model; bins without items are left out.
std::vector<Bin> packing_of(std::span<const double> values, std::span<const BinItem> items, std::int64_t bins);

struct SolvedBins {
  std::vector<Bin> bins;
  bool fewest = false, emptiest = false;  ///< proven by the stage
  bool truncated = false;                 ///< seconds ended a stage, and another run may end otherwise
};
/// Which of the two are asked.
struct PackingStages {
  bool fewest = true, emptiest = true;
};
/// From a packing on the fewest bins, and of so many the emptiest last one. The packing of the first stage is kept
/// where the second ends without a better one.
SolvedBins solve_bins(std::vector<Bin> packing, const PackingStages& stages, std::span<const BinItem> items,
                      const BinRules& rules, const milp::Limits& limits);

}  // namespace braid::planner
