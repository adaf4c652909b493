#include "costmodel/profile/isotonic.h"

#include <algorithm>

namespace braid::costmodel {

std::vector<double> isotonic(std::span<const double> values) {
  struct Pool {
    double weight = 0;
    double mean = 0;
    std::size_t size = 0;
  };
  std::vector<Pool> pools;
  for (const double value : values) {
    constexpr double kLeast = 1e-15;
    const double size = std::max(value, kLeast);
    pools.push_back({1 / (size * size), value, 1});
    while (pools.size() > 1 && pools[pools.size() - 2].mean > pools.back().mean) {
      const Pool last = pools.back();
      pools.pop_back();
      Pool& into = pools.back();
      const double weight = into.weight + last.weight;
      into.mean = (into.mean * into.weight + last.mean * last.weight) / weight;
      into.weight = weight;
      into.size += last.size;
    }
  }
  std::vector<double> fitted;
  for (const Pool& pool : pools) fitted.insert(fitted.end(), pool.size, pool.mean);
  return fitted;
}

}  // namespace braid::costmodel
