#include "planner/muxtune/muxtune.h"

#include <gtest/gtest.h>

#include "planner/layout_study.h"

namespace braid::planner {
namespace {

using namespace testing;

TEST(MuxTune, FewTasksAreLaidOutWithEveryNAndP) {
  MuxTuneOptions all;
  all.lays_out_all = true;
  for (const auto& [tp, pp] : {std::pair{2, 1}, {2, 2}}) {
    for (const std::int64_t tasks : {3, 8}) {
      LayoutInstance instance({tasks, tp, pp, 1}, 0);
      EXPECT_EQ(instance.seconds({}), instance.seconds(all)) << tasks << " tasks, tp " << tp << ", pp " << pp;
    }
  }
}

TEST(MuxTune, TheTemplateTakesWhatReplayDoes) {
  // Lengths of 64 to 512 tokens share clocks, whose chunks are unlike then.
  double worst = 0;
  for (const auto& [tp, pp] : {std::pair{2, 2}, {2, 4}}) {
    for (std::uint64_t seed = 0; seed < 10; ++seed)
      worst = std::max(worst, std::abs(LayoutInstance({5, tp, pp, 1}, seed).template_lacks()));
  }
  EXPECT_LT(worst, 0.02);
}

TEST(MuxTune, OfManyTasksTheBestByEq3LoseLittle) {
  EXPECT_LT(layout_losses({11, 2, 1, 2}).worst, 0.005);
}

TEST(MuxTune, WithoutShardsBucketsOfSeveralHTasksGainLittle) {
  EXPECT_LT(layout_losses({10, 1, 4, 2}).worst, 0.005);
}

}  // namespace
}  // namespace braid::planner
