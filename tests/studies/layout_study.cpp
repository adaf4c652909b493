// What MuxTune's search loses by ranking layouts by Eq. 3: prints results/muxtune/layouts.txt.
#include "planner/layout_study.h"

#include <fmt/core.h>

namespace braid::planner::testing {
namespace {

void print_layouts() {
  fmt::print(
      "A step's seconds, of the layouts that are best by Eq. 3 laid out with their real microbatches, over those "
      "where\n"
      "every N (hTasks) with every P (buckets) is: random sets of tasks, in 1 to 8 microbatches, on one pipeline of "
      "A40s.\n"
      "Of 40 tasks every second P is tried where there are more than 32 hTasks.\n\n"
      "tasks  tp  pp  sets    mean   worst  lose nothing\n");
  for (const std::int64_t tasks : {4, 8, 12, 16, 40}) {
    const std::uint64_t instances = tasks > 16 ? 3 : 10;
    for (const auto& [tp, pp] : {std::pair{1, 4}, {2, 1}, {2, 2}, {4, 2}}) {
      if (tasks > 16 && tp * pp < 4) continue;  // not enough memory
      const LayoutLosses losses = layout_losses({tasks, tp, pp, instances});
      fmt::print("{:5}  {:2}  {:2}  {:4}  {:5.2f}%  {:5.2f}%  {:12}\n", tasks, tp, pp, instances, 100 * losses.mean,
                 100 * losses.worst, losses.none);
    }
  }
}

}  // namespace
}  // namespace braid::planner::testing

int main() {
  braid::planner::testing::print_layouts();
}
