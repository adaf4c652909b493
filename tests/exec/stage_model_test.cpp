#include "exec/stage_model.h"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "exec/slopes.h"
#include "tasks_laws.h"

namespace braid::exec {
namespace {

std::vector<costmodel::AdapterShape> mixed_shapes() {
  std::vector<costmodel::AdapterShape> shapes = {adapter_shape(4, 0, kAll),
                                                 adapter_shape(3, 0.3, {Module::q, Module::v, Module::down}),
                                                 adapter_shape(8, 0, {Module::k, Module::o, Module::up})};
  shapes[0].module_ranks[static_cast<std::size_t>(Module::k)] = 7;
  shapes[0].module_alphas[static_cast<std::size_t>(Module::up)] = 3;
  shapes[1].module_ranks[static_cast<std::size_t>(Module::v)] = 1;
  return shapes;
}

TEST(StageModel, BatchedTasksGetTheGradientsThatTheyGetAlone) {
  Tasks tasks(mixed_shapes());
  std::vector<std::vector<float>> alone;
  std::vector<double> losses;
  for (planner::TaskIndex task = 0; task < 3; ++task) {
    losses.push_back(tasks.pass(tasks.microbatch({task}))[static_cast<std::size_t>(task)]);
    alone.push_back(tasks.take_gradient(static_cast<std::size_t>(task)));
  }
  const std::vector<double> together = tasks.pass(tasks.microbatch({0, 1, 2}));
  for (std::size_t task = 0; task < 3; ++task) {
    EXPECT_NEAR(together[task], losses[task], 1e-6 * losses[task]);
    EXPECT_LT(testing::relative_difference(tasks.take_gradient(task), alone[task]), 1e-6) << "task " << task;
  }
}

TEST(StageModel, PaddingChangesNoGradient) {
  Tasks tasks(mixed_shapes());
  const double loss = tasks.pass(tasks.microbatch({0}))[0];
  const std::vector<float> exact = tasks.take_gradient(0);
  EXPECT_NEAR(tasks.pass(tasks.microbatch({0}, 9))[0], loss, 1e-6 * loss);
  EXPECT_LT(testing::relative_difference(tasks.take_gradient(0), exact), 1e-6);
}

class StageModelOf : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Backbones, StageModelOf, ::testing::Values("llama", "qwen3"),
                         [](const auto& tested) { return std::string(tested.param); });

TEST_P(StageModelOf, ChunksGetTheLossesAndGradientsOfWholeSamples) {
  Tasks tasks(mixed_shapes(), GetParam());
  const planner::Microbatch microbatch = tasks.microbatch({0, 1, 2});
  const std::vector<double> losses = tasks.pass(microbatch);
  std::vector<std::vector<float>> whole;
  for (std::size_t task = 0; task < 3; ++task) whole.push_back(tasks.take_gradient(task));
  for (const std::int32_t size : {1, 3, 8, 16}) {
    const std::vector<planner::Microbatch> chunks = tasks.chunks(microbatch, size);
    ASSERT_GT(chunks.size(), 1U);
    const std::vector<double> in_chunks = tasks.pass_of_chunks(chunks);
    for (std::size_t task = 0; task < 3; ++task) {
      EXPECT_NEAR(in_chunks[task], losses[task], 1e-6 * losses[task]) << size;
      EXPECT_LT(testing::relative_difference(tasks.take_gradient(task), whole[task]), 2e-6) << task << " " << size;
    }
  }
  EXPECT_EQ(tasks.golden.model.live(), 0U);
}

TEST(StageModel, ATaskInOneChunkOfManyLearnsNothingFromTheOthers) {
  // Without an adapter on keys or values of the first layer, a later chunk gives back gradients that nobody reads.
  Tasks tasks({adapter_shape(4, 0, {Module::down}), adapter_shape(4, 0, {Module::k})});
  std::vector<std::vector<float>> alone;
  for (planner::TaskIndex task = 0; task < 2; ++task) {
    tasks.pass(tasks.microbatch({task}));
    alone.push_back(tasks.take_gradient(static_cast<std::size_t>(task)));
  }
  // The second task's samples are whole in the first microbatch; those of the first go on.
  std::vector<planner::Microbatch> chunks = tasks.chunks(tasks.microbatch({0}), 8);
  for (const planner::Segment& segment : tasks.microbatch({1}).segments) chunks[0].segments.push_back(segment);
  tasks.pass_of_chunks(chunks);
  for (std::size_t task = 0; task < 2; ++task)
    EXPECT_LT(testing::relative_difference(tasks.take_gradient(task), alone[task]), 2e-6) << task;
}

TEST(StageModel, ATaskWithoutNumbersLeavesTheOthersTheirs) {
  Tasks tasks(mixed_shapes());
  tasks.pass(tasks.microbatch({0, 1, 2}));
  const std::vector<float> first = tasks.take_gradient(0), third = tasks.take_gradient(2);
  tasks.take_gradient(1);
  for (float& number : tasks.adapters[1]->parameters()) number = std::numeric_limits<float>::quiet_NaN();
  const std::vector<double> losses = tasks.pass(tasks.microbatch({0, 1, 2}));
  EXPECT_TRUE(std::isnan(losses[1]));
  EXPECT_EQ(tasks.take_gradient(0), first);
  EXPECT_EQ(tasks.take_gradient(2), third);
}

TEST(StageModel, GradientsAreTheSlopesOfTheLossWithDropoutToo) {
  Tasks tasks({adapter_shape(2, 0.4, kAll)});
  tasks.pass(tasks.microbatch({0}));
  const std::vector<float> gradient = tasks.take_gradient(0);
  const std::span<float> parameters = tasks.adapters[0]->parameters().span();
  expect_slopes(parameters, gradient, [&] {
    const double loss = tasks.pass(tasks.microbatch({0}))[0];
    tasks.take_gradient(0);
    return loss;
  });
}

TEST_P(StageModelOf, DoesTheWorkThatTheCostModelCharges) {
  for (const std::vector<costmodel::AdapterShape>& shapes :
       {mixed_shapes(), {adapter_shape(4, 0, {Module::gate})}, {adapter_shape(4, 0, {Module::q, Module::v})}}) {
    Tasks tasks(shapes, GetParam());
    expect_charged_work(tasks);
  }
}

TEST_P(StageModelOf, HoldsWhatTheMemoryModelSays) {
  using costmodel::RecomputeKind;
  for (const costmodel::Recompute& recompute : kRecomputes) {
    for (const double dropout : {0.0, 0.1}) {
      for (const std::vector<planner::TaskIndex>& present :
           std::vector<std::vector<planner::TaskIndex>>{{0, 1, 2}, {0}, {1}, {2}}) {
        std::vector<costmodel::AdapterShape> shapes = mixed_shapes();
        for (costmodel::AdapterShape& shape : shapes) shape.dropout = dropout;
        Tasks tasks(shapes, GetParam(), recompute);
        expect_known_memory(tasks, tasks.microbatch(present, 40), recompute, fmt::format("dropout {}", dropout));
      }
    }
  }
}

}  // namespace
}  // namespace braid::exec
