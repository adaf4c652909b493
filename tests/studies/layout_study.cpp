// What MuxTune's search loses by ranking layouts by Eq. 3: prints results/muxtune/layouts.txt.
#include "planner/layout_study.h"

#include <fmt/core.h>

namespace braid::planner::testing {
namespace {

void print_layouts() {
  constexpr std::uint64_t kInstances = 10;
  fmt::print(
      "A step's seconds, of the layouts that are best by Eq. 3 laid out with their real microbatches, over those "
      "where\n"
      "every N (hTasks) with every P (buckets) is: {} random sets of tasks each, in 1 to 8 microbatches, on one "
      "pipeline\n"
      "of A40s. Without shards (tp 1) P = N alone is tried.\n\n"
      "tasks  tp  pp    mean   worst  lose nothing\n",
      kInstances);
  for (const std::int64_t tasks : {4, 8, 12, 16}) {
    for (const auto& [tp, pp] : {std::pair{1, 4}, {2, 1}, {2, 2}, {4, 2}}) {
      const LayoutLosses losses = layout_losses({tasks, tp, pp, kInstances});
      fmt::print("{:5}  {:2}  {:2}  {:5.2f}%  {:5.2f}%  {:12}\n", tasks, tp, pp, 100 * losses.mean, 100 * losses.worst,
                 losses.none);
    }
  }
}

}  // namespace
}  // namespace braid::planner::testing

int main() {
  braid::planner::testing::print_layouts();
}
