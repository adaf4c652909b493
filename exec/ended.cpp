#include "exec/ended.h"

#include <cmath>

namespace braid::exec {

std::string_view name(Ended ended) {
  switch (ended) {
    case Ended::no:
      return "no";
    case Ended::diverged:
      return "diverged";
    case Ended::cancelled:
      return "cancelled";
    case Ended::early:
      return "early";
    case Ended::outranked:
      break;
  }
  return "outranked";
}

std::optional<Evaluated> best_of(std::span<const Evaluated> evaluations) {
  std::optional<Evaluated> best;
  for (const Evaluated& one : evaluations)
    if (std::isfinite(one.loss) && (!best || one.loss < best->loss)) best = one;
  return best;
}

}  // namespace braid::exec
