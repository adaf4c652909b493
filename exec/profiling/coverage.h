#pragma once

#include <compare>
#include <map>
#include <set>

#include "costmodel/profile/profile.h"

namespace braid::exec {

/// Where a profile has points, and how far from them other work lies.
class Coverage {
 public:
  explicit Coverage(const costmodel::Profile& profile);

  /// Counts the call as measured.
  void add(const costmodel::OperatorCall& call);

  /// From 0, measured there or between close neighbours, to 1, with nothing alike near: how little the profile can
  /// tell of the call. Distances are ratios of tokens, of attention of context lengths, of chunks of prefixes.
  double distance(const costmodel::OperatorCall& call) const;

 private:
  struct Key {
    costmodel::Operator op = costmodel::Operator::linear;
    costmodel::Pass pass = costmodel::Pass::forward;
    costmodel::OperatorShape shape{};
    std::int64_t chunk = 0;  // attention after a prefix: tokens of a chunk
    auto operator<=>(const Key&) const = default;
  };
  static Key key_of(costmodel::Operator op, costmodel::Pass pass, const costmodel::OperatorShape& shape,
                    std::int64_t context, std::int64_t prefix);

  std::map<Key, std::set<double>> points_;  // logarithms of what was measured
};

}  // namespace braid::exec
