#include "workload/sample_index.h"

#include <algorithm>
#include <numeric>
#include <set>

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "base/error.h"

namespace braid::workload {
namespace {

Task task_of(std::int64_t global_batch_size, std::int64_t epochs, std::uint64_t seed) {
  Task task;
  task.name = "t";
  task.global_batch_size = global_batch_size;
  task.epochs = epochs;
  task.seed = seed;
  return task;
}

/// Sizes that tell the samples apart.
std::vector<SampleSize> sizes_of(std::int64_t samples) {
  std::vector<SampleSize> sizes;
  for (std::int64_t i = 0; i < samples; ++i) sizes.push_back({i + 2, i + 1});
  return sizes;
}

std::vector<std::int64_t> epoch_order(const SampleIndex& index, int task, std::int64_t epoch) {
  std::vector<std::int64_t> order;
  const std::int64_t batches = index.batches_per_epoch(task);
  for (std::int64_t step = epoch * batches; step < (epoch + 1) * batches; ++step) {
    for (const SampleRef& ref : index.global_batch(task, step)) order.push_back(ref.sample);
  }
  return order;
}

TEST(SampleIndex, LengthsAreLearnedFromOrEvaluatedOn) {
  Task task = task_of(8, 2, 1);
  task.max_length = 512;
  task.lengths = LengthDistribution{.mean = 100, .sigma = 0.5, .max = 512, .samples = 200};
  std::vector<SampleSize> all = sample_sizes(task);
  EXPECT_TRUE(held_out_sizes(task).empty());
  task.evaluation = Evaluation{0.1, {}, 0, 0};
  std::vector<SampleSize> learned = sample_sizes(task);
  const std::vector<SampleSize> held = held_out_sizes(task);
  EXPECT_EQ(held.size(), 20U);
  learned.insert(learned.end(), held.begin(), held.end());
  std::ranges::sort(learned, {}, &SampleSize::tokens);
  std::ranges::sort(all, {}, &SampleSize::tokens);
  EXPECT_EQ(learned, all);
}

TEST(SampleIndex, BatchesPartitionEveryEpoch) {
  const bool holds = rc::check([] {
    const auto samples = *rc::gen::inRange<std::int64_t>(1, 60);
    const auto batch = *rc::gen::inRange<std::int64_t>(1, 70);
    const auto epochs = *rc::gen::inRange<std::int64_t>(1, 4);
    const auto seed = *rc::gen::arbitrary<std::uint64_t>();
    const std::vector<Task> tasks = {task_of(batch, epochs, seed)};
    const SampleIndex index(tasks, {sizes_of(samples)});
    RC_ASSERT(index.batches_per_epoch(0) == (samples + batch - 1) / batch);
    RC_ASSERT(index.steps(0) == epochs * index.batches_per_epoch(0));
    for (std::int64_t epoch = 0; epoch < epochs; ++epoch) {
      std::vector<std::int64_t> order = epoch_order(index, 0, epoch);
      std::sort(order.begin(), order.end());
      std::vector<std::int64_t> all(static_cast<std::size_t>(samples));
      std::iota(all.begin(), all.end(), 0);
      RC_ASSERT(order == all);
    }
    for (std::int64_t step = 0; step < index.steps(0); ++step) {
      const bool last = (step + 1) % index.batches_per_epoch(0) == 0;
      const std::int64_t size = last ? samples - batch * (index.batches_per_epoch(0) - 1) : batch;
      RC_ASSERT(static_cast<std::int64_t>(index.global_batch(0, step).size()) == size);
    }
  });
  EXPECT_TRUE(holds);
}

TEST(SampleIndex, ASampleComesWithItsSizes) {
  const std::vector<Task> tasks = {task_of(4, 1, 3)};
  const SampleIndex index(tasks, {sizes_of(10)});
  for (std::int64_t step = 0; step < index.steps(0); ++step) {
    for (const SampleRef& ref : index.global_batch(0, step)) {
      EXPECT_EQ(ref.tokens, ref.sample + 2);
      EXPECT_EQ(ref.supervised, ref.sample + 1);
    }
  }
}

TEST(SampleIndex, DoesNotDependOnTheOrderOfAsking) {
  const std::vector<Task> tasks = {task_of(3, 5, 1)};
  const SampleIndex forward(tasks, {sizes_of(10)});
  const SampleIndex backward(tasks, {sizes_of(10)});
  std::vector<std::vector<SampleRef>> batches;
  for (std::int64_t step = 0; step < forward.steps(0); ++step) batches.push_back(forward.global_batch(0, step));
  for (std::int64_t step = backward.steps(0); step-- > 0;) {
    EXPECT_EQ(backward.global_batch(0, step), batches[static_cast<std::size_t>(step)]);
  }
}

TEST(SampleIndex, DoesNotDependOnTheOtherTasks) {
  const Task task = task_of(8, 3, 42);
  const std::vector<Task> alone_tasks = {task};
  const std::vector<Task> crowd_tasks = {task_of(2, 1, 42), task, task_of(5, 9, 0)};
  const SampleIndex alone(alone_tasks, {sizes_of(50)});
  const SampleIndex crowd(crowd_tasks, {sizes_of(7), sizes_of(50), sizes_of(20)});
  for (std::int64_t step = 0; step < alone.steps(0); ++step) {
    crowd.global_batch(0, step % crowd.steps(0));
    EXPECT_EQ(crowd.global_batch(1, step), alone.global_batch(0, step));
  }
}

TEST(SampleIndex, EpochsAndSeedsShuffleDifferently) {
  const std::vector<Task> tasks = {task_of(10, 3, 0), task_of(10, 3, 1)};
  const SampleIndex index(tasks, {sizes_of(100), sizes_of(100)});
  std::set<std::vector<std::int64_t>> orders;
  for (int task = 0; task < 2; ++task) {
    for (std::int64_t epoch = 0; epoch < 3; ++epoch) orders.insert(epoch_order(index, task, epoch));
  }
  EXPECT_EQ(orders.size(), 6u);
}

TEST(SampleIndex, TheBatchSizeCutsOneAndTheSameOrder) {
  const std::vector<Task> tasks = {task_of(7, 2, 5), task_of(16, 2, 5)};
  const SampleIndex index(tasks, {sizes_of(50), sizes_of(50)});
  for (std::int64_t epoch = 0; epoch < 2; ++epoch)
    EXPECT_EQ(epoch_order(index, 0, epoch), epoch_order(index, 1, epoch));
}

TEST(SampleIndex, EverySampleIsEquallyLikelyAtEveryPlace) {
  constexpr int kEpochs = 6000, kSamples = 5;
  const std::vector<Task> tasks = {task_of(kSamples, kEpochs, 9)};
  const SampleIndex index(tasks, {sizes_of(kSamples)});
  std::vector<int> counts(kSamples * kSamples);
  for (std::int64_t step = 0; step < kEpochs; ++step) {
    const auto batch = index.global_batch(0, step);
    for (std::size_t place = 0; place < batch.size(); ++place) {
      ++counts[place * kSamples + static_cast<std::size_t>(batch[place].sample)];
    }
  }
  // 1200 expected, deviation 31.
  for (const int count : counts) EXPECT_NEAR(count, kEpochs / kSamples, 160);
}

TEST(SampleIndex, StepsMayRunPastAnEpochOrStopInIt) {
  Task task = task_of(4, 1, 0);
  EXPECT_EQ(steps_of(task, 10), 3);
  EXPECT_EQ(steps_of(task, 8), 2);
  task.epochs = 7;
  EXPECT_EQ(steps_of(task, 10), 21);
  task.epochs.reset();
  task.steps = 8;
  EXPECT_EQ(steps_of(task, 10), 8);
  const std::vector<Task> tasks = {task};
  const SampleIndex index(tasks, {sizes_of(10)});
  EXPECT_EQ(index.steps(0), 8);
  EXPECT_EQ(index.global_batch(0, 5).size(), 2u);
  EXPECT_EQ(index.global_batch(0, 6).size(), 4u);
  EXPECT_EQ(index.global_batch(0, 8).size(), 2u);
  EXPECT_THROW(index.global_batch(0, -1), InternalError);
  EXPECT_THROW(index.global_batch(1, 0), InternalError);
}

TEST(PlannedSizes, ObeyMaxLengthAndSuperviseAllButTheFirstToken) {
  Task task = task_of(4, 1, 0);
  task.max_length = 60;
  task.lengths = LengthDistribution{LengthDistribution::Kind::uniform, 0, 0, 11, 110, 1000};
  task.on_too_long = OnTooLong::truncate;
  const auto cut = sample_sizes(task);
  EXPECT_EQ(cut.size(), 1000u);
  EXPECT_NEAR(static_cast<double>(std::count(cut.begin(), cut.end(), SampleSize{60, 59})), 510, 80);
  task.on_too_long = OnTooLong::drop;
  const auto kept = sample_sizes(task);
  EXPECT_NEAR(static_cast<double>(kept.size()), 500, 80);
  for (const SampleSize& size : kept) {
    EXPECT_LE(size.tokens, 60);
    EXPECT_EQ(size.supervised, size.tokens - 1);
  }
  task.max_length = 10;
  EXPECT_THROW(sample_sizes(task), Error);
}

TEST(PlannedSizes, DifferBetweenTasksOfOneSeed) {
  Task task = task_of(4, 1, 0);
  task.max_length = 100;
  task.lengths = LengthDistribution{LengthDistribution::Kind::uniform, 0, 0, 2, 100, 50};
  Task other = task;
  EXPECT_EQ(sample_sizes(task), sample_sizes(other));
  other.name = "u";
  EXPECT_NE(sample_sizes(task), sample_sizes(other));
}

}  // namespace
}  // namespace braid::workload
