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

TEST(MuxTune, OfManyTasksTheBestByEq3LoseLittle) {
  EXPECT_LT(layout_losses({11, 2, 1, 2}).worst, 0.005);
}

TEST(MuxTune, WithoutShardsBucketsOfSeveralHTasksGainLittle) {
  EXPECT_LT(layout_losses({10, 1, 4, 2}).worst, 0.005);
}

}  // namespace
}  // namespace braid::planner
