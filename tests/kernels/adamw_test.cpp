#include "kernels/adamw.h"

#include "testing.h"

namespace braid::kernels {
namespace {

using testing::as_row;
using testing::normal_vector;
using testing::with_threads;

TEST(AdamW, FirstStepMovesEveryParameterByTheLearningRateAgainstItsGradient) {
  // With m = v = 0 the bias corrections cancel: the step is lr · g / (|g| + ε).
  AdamWStep step;
  step.learning_rate = 0.125;
  step.epsilon = 0.0;
  for (const auto& adamw : {reference::adamw, cpu::adamw}) {
    const std::vector<float> gradient{3.0F, -0.001F, 250.0F};
    std::vector<float> parameter{1.0F, 2.0F, -3.0F}, mean(3), square(3);
    adamw(step, gradient, parameter, mean, square);
    const std::vector<float> expected{1.0F - 0.125F, 2.0F + 0.125F, -3.0F - 0.125F};
    EXPECT_TRUE(testing::near(as_row(parameter), as_row(expected), 1e-6));
    EXPECT_NEAR(mean[0], 0.1 * 3.0, 1e-6);
    EXPECT_NEAR(square[0], 0.001 * 9.0, 1e-8);
  }
}

TEST(AdamW, WithoutGradientOnlyTheDecayMovesParameters) {
  AdamWStep step;
  step.learning_rate = 0.5;
  step.weight_decay = 0.25;
  for (const auto& adamw : {reference::adamw, cpu::adamw}) {
    const std::vector<float> gradient(1);
    std::vector<float> parameter{8.0F}, mean(1), square(1);
    adamw(step, gradient, parameter, mean, square);
    EXPECT_FLOAT_EQ(parameter[0], 8.0F * (1.0F - 0.125F));
  }
}

TEST(AdamW, ScalingTheGradientEqualsAScaledGradient) {
  RandomStream random(1);
  AdamWStep step;
  step.learning_rate = 1e-2;
  const std::vector<float> gradient = normal_vector(random, 100);
  std::vector<float> quarter;
  for (const float g : gradient) quarter.push_back(0.25F * g);
  const std::vector<float> start = normal_vector(random, 100);
  std::vector<float> parameter = start, mean(100), square(100), parameter2 = start, mean2(100), square2(100);
  cpu::adamw(step, quarter, parameter, mean, square);
  step.gradient_scale = 0.25;
  cpu::adamw(step, gradient, parameter2, mean2, square2);
  EXPECT_TRUE(testing::same_bits(as_row(parameter2), as_row(parameter)));
}

TEST(AdamW, EqualsItsReferenceOverManySteps) {
  RandomStream random(2);
  constexpr std::int64_t kCount = 20001;
  AdamWStep step;
  step.learning_rate = 1e-3;
  step.weight_decay = 0.1;
  step.gradient_scale = 0.7;
  std::vector<float> parameter = normal_vector(random, kCount), mean(kCount), square(kCount);
  std::vector<float> parameter_expected = parameter, mean_expected = mean, square_expected = square;
  for (step.step = 1; step.step <= 20; ++step.step) {
    const std::vector<float> gradient = normal_vector(random, kCount);
    cpu::adamw(step, gradient, parameter, mean, square);
    reference::adamw(step, gradient, parameter_expected, mean_expected, square_expected);
  }
  EXPECT_TRUE(testing::near(as_row(parameter), as_row(parameter_expected), 1e-6));
  EXPECT_TRUE(testing::near(as_row(mean), as_row(mean_expected), 1e-6));
  EXPECT_TRUE(testing::near(as_row(square), as_row(square_expected), 1e-6));
}

TEST(AdamW, BitsDependNeitherOnThreadsNorOnAlignment) {
  RandomStream random(3);
  constexpr std::int64_t kCount = 50001;
  AdamWStep step;
  step.learning_rate = 1e-3;
  step.step = 3;
  const std::vector<float> gradient = normal_vector(random, kCount), mean(kCount, 0.5F), square(kCount, 0.25F);
  const std::vector<float> parameter = normal_vector(random, kCount);
  const auto stepped = [&](int threads, std::size_t shift) {
    const auto shifted = [&](const std::vector<float>& numbers) {
      std::vector<float> moved(shift + numbers.size());
      std::copy(numbers.begin(), numbers.end(), moved.begin() + static_cast<std::ptrdiff_t>(shift));
      return moved;
    };
    std::vector<float> g = shifted(gradient), p = shifted(parameter), m = shifted(mean), v = shifted(square);
    with_threads(threads, [&] {
      cpu::adamw(step, std::span(g).subspan(shift), std::span(p).subspan(shift), std::span(m).subspan(shift),
                 std::span(v).subspan(shift));
    });
    return std::vector<float>(p.begin() + static_cast<std::ptrdiff_t>(shift), p.end());
  };
  EXPECT_EQ(stepped(1, 0), stepped(3, 1));
}

}  // namespace
}  // namespace braid::kernels
