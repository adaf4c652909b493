#include "planner/closed_forms.h"

#include <algorithm>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace braid::planner::testing {
namespace {

struct Pipeline {
  std::vector<double> stages;
  std::int64_t microbatches = 1;
};

Pipeline any_pipeline() {
  Pipeline pipeline;
  const auto count = *rc::gen::inRange<std::size_t>(1, 7);
  for (std::size_t s = 0; s < count; ++s) pipeline.stages.push_back(*rc::gen::inRange(1, 20));
  pipeline.microbatches = *rc::gen::inRange<std::int64_t>(1, 20);
  return pipeline;
}

/// GPipe by its own recurrence: all forward passes, then all backward passes.
double gpipe_by_recurrence(const Pipeline& pipeline) {
  const std::size_t count = pipeline.stages.size();
  std::vector<double> free_at(count, 0);
  for (std::int64_t m = 0; m < pipeline.microbatches; ++m) {
    double ready = 0;
    for (std::size_t s = 0; s < count; ++s) ready = free_at[s] = std::max(free_at[s], ready) + pipeline.stages[s];
  }
  double end = 0;
  for (std::int64_t m = 0; m < pipeline.microbatches; ++m) {
    double ready = 0;
    for (std::size_t s = count; s-- > 0;) ready = free_at[s] = std::max(free_at[s], ready) + pipeline.stages[s];
    end = std::max(end, ready);
  }
  return end;
}

RC_GTEST_PROP(ClosedForms, TheClosedFormIsExactForGpipeAndBounds1F1B, ()) {
  const Pipeline pipeline = any_pipeline();
  const double closed = gpipe_seconds(pipeline.stages, pipeline.microbatches);
  const double exact = one_f_one_b_seconds(pipeline.stages, pipeline.microbatches);
  RC_ASSERT(closed == gpipe_by_recurrence(pipeline));
  RC_ASSERT(exact <= closed);
  const double busiest = *std::max_element(pipeline.stages.begin(), pipeline.stages.end());
  RC_ASSERT(exact >= 2 * busiest * static_cast<double>(pipeline.microbatches));
}

RC_GTEST_PROP(ClosedForms, Eq4IsExactWhereTheLastStageIsASlowestOne, ()) {
  Pipeline pipeline = any_pipeline();
  const auto slowest = std::max_element(pipeline.stages.begin(), pipeline.stages.end());
  std::iter_swap(slowest, std::prev(pipeline.stages.end()));
  RC_ASSERT(eq4_seconds(pipeline.stages, pipeline.microbatches) ==
            one_f_one_b_seconds(pipeline.stages, pipeline.microbatches));
}

TEST(ClosedForms, ElsewhereEq4IsOffAndLaterStagesHide) {
  const std::vector<double> first_slowest = {5, 1, 1};
  EXPECT_EQ(eq4_seconds(first_slowest, 4), 2 * 6 + 2 * 4 * 5);
  EXPECT_EQ(gpipe_seconds(first_slowest, 4), 2 * 7 + 2 * 3 * 5);
  EXPECT_LT(one_f_one_b_seconds(first_slowest, 4), gpipe_seconds(first_slowest, 4));
}

}  // namespace
}  // namespace braid::planner::testing
