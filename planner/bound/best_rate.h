#pragma once

#include <cstddef>
#include <unordered_map>
#include <vector>

#include "costmodel/profile/cost_model.h"

namespace braid::planner {

/// What work costs at the least, whatever batches it comes in. Remembers what it was asked. Not for concurrent use; the
/// cost model must outlive it.
///
/// The proof rests on the law that a call never takes less time for more work, which the roofline is tested for and a
/// measured profile's isotonic curves are made for. Then, for a grid g_0 < g_1 < ... and n in [g_i, g_{i+1}), the time
/// t(n) / n of one of n is at least t(g_i) / (g_{i+1} - 1).
class BestRates {
 public:
  explicit BestRates(const costmodel::CostModel& cost) : cost_(cost) {}

  enum class Unit { tokens, sequences };
  /// Whether a call runs alone, or may share its launches: then MuxTune's Eq. 3 counts its utilization's share, and of
  /// attention the products of all sequences add up, or what they move.
  enum class Weight { whole, utilized, products, memory };

  /// The least seconds per unit over all batches of 1 to `most` units; `call` says the rest, its `count` is not
  /// applied. Too low by no more than a 64th. Cost: O(64 log most) prices for the first question about a kind of call.
  double seconds(costmodel::OperatorCall call, Unit unit, std::int64_t most, Weight weight = Weight::whole);

 private:
  struct Question {
    costmodel::OperatorCall call;
    Unit unit = Unit::tokens;
    Weight weight = Weight::whole;
    bool operator==(const Question&) const = default;
  };
  struct Hash {
    std::size_t operator()(const Question& question) const;
  };
  struct GridPoint {
    std::int64_t units = 1;
    double seconds = 0;       ///< of a call of so many
    double least_before = 0;  ///< per unit, over all smaller batches
  };

  double price(const Question& question, std::int64_t units) const;

  const costmodel::CostModel& cost_;
  std::unordered_map<Question, std::vector<GridPoint>, Hash> known_;
};

}  // namespace braid::planner
