#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <tuple>
#include <vector>

#include "costmodel/operators.h"

namespace braid::exec {

/// How much longer passes take than the medians of their operators add up to. Now and then an operator is held up:
/// its median does not know of that, but a pass of a hundred operators meets some of it each time.
class PassSkew {
 public:
  /// Passes that run the same operators in the same order.
  struct Kind {
    std::size_t adapter = 0;
    std::int64_t tokens = 0;
    costmodel::Pass pass = costmodel::Pass::forward;
    auto operator<=>(const Kind&) const = default;
  };

  /// One pass: the seconds of each operator, and in all. Throws InternalError for another number of operators than
  /// passes of that kind had.
  void add(const Kind& kind, std::span<const double> operators, double total);

  /// The median over all kinds of: a pass's median time over the sum of its operators' medians and that of the rest.
  /// 1 where nothing was added.
  double factor() const;

 private:
  struct Samples {
    std::vector<std::vector<double>> parts;  // one an operator, and the rest
    std::vector<double> totals;
  };
  std::map<Kind, Samples> samples_;
};

}  // namespace braid::exec
