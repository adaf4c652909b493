#include "planner/search/fewer_tokens.h"

#include <gtest/gtest.h>

#include "planner/search/less_work.h"
#include "planner/studies.h"

namespace braid::planner {
namespace {

using testing::StudyTask;
using workload::OnTooLong;
using workload::SampleIndex;
using workload::Workload;

struct Work {
  explicit Work(const std::vector<StudyTask>& tasks)
      : workload(testing::study_workload(tasks, 4)), samples(testing::study_samples(workload)) {}

  Workload workload;
  SampleIndex samples;
};

std::int64_t longest(const Workload& workload) {
  std::int64_t most = 0;
  for (const workload::Task& task : workload.tasks) most = std::max(most, task.max_length);
  return most;
}

TEST(FewerTokens, NoLowerLengthNoSmallerBatchAndNoFewerTasksGiveUpLess) {
  const Work asked({{512, 4}, {1024, 8}, {64, 10}});
  const std::int64_t all = tokens_of_step(asked.workload);
  for (std::int64_t budget = 64; budget < all; budget = budget * 5 / 4) {
    const auto fits = [&](const Workload& workload, const SampleIndex& /*samples*/) {
      return tokens_of_step(workload) <= budget;
    };
    std::int64_t most = 0;
    const auto try_one = [&](const Workload& workload) {
      if (tokens_of_step(workload) <= budget) most = std::max(most, tokens_of_step(workload));
    };
    // Below the distributions' means nothing is asked for.
    for (std::int64_t length = 512; length < 1024; length += length_step(asked.workload))
      try_one(with_max_length(asked.workload, asked.samples, length)->workload);
    for (std::int64_t batch = 1; batch < 10; ++batch)
      try_one(with_global_batch(asked.workload, asked.samples, batch).workload);
    for (const std::vector<TaskIndex>& kept : {std::vector<TaskIndex>{2}, {2, 0}})
      try_one(with_tasks(asked.workload, asked.samples, kept).workload);

    const std::optional<Loss> loss = fewest_tokens_lost(asked.workload, asked.samples, fits);
    ASSERT_EQ(loss.has_value(), most > 0) << budget;
    if (!loss) continue;
    EXPECT_NEAR(loss->share, 1 - static_cast<double>(most) / static_cast<double>(all), 1e-12) << loss->change;
  }
}

TEST(FewerTokens, ALengthIsLoweredNoFurtherThanDistributionsAndDroppedSamplesAllow) {
  Work asked({{1024, 32}});
  const auto only_short = [](const Workload& workload, const SampleIndex& /*samples*/) {
    return longest(workload) <= 600;
  };
  const std::optional<Loss> loss = fewest_tokens_lost(asked.workload, asked.samples, only_short);
  ASSERT_TRUE(loss);
  EXPECT_EQ(loss->change, "lower max_length to 592 where it is more, with on_too_long: truncate");
  // The mean of the study's lengths is 512, and so is its shortest sample.
  EXPECT_FALSE(with_max_length(asked.workload, asked.samples, 511));
  asked.workload.tasks[0].lengths.reset();
  EXPECT_TRUE(with_max_length(asked.workload, asked.samples, 511));
  asked.workload.tasks[0].on_too_long = OnTooLong::drop;
  EXPECT_FALSE(with_max_length(asked.workload, asked.samples, 511));
  const std::optional<LessWork> fewer = with_max_length(asked.workload, asked.samples, 600);
  ASSERT_TRUE(fewer);
  EXPECT_EQ(fewer->workload.tasks[0].on_too_long, OnTooLong::drop);
  EXPECT_LT(fewer->samples.samples(0), asked.samples.samples(0));
}

}  // namespace
}  // namespace braid::planner
