#include "costmodel/profile/memory_fit.h"

#include <gtest/gtest.h>

#include "base/random.h"
#include "costmodel/shapes.h"
#include "costmodel/work/memory.h"
#include "support.h"

namespace braid::costmodel {
namespace {

TEST(MemoryFit, RecoversPlantedCoefficientsUnderNoise) {
  RandomStream random(3);
  MemoryLearner learner;
  const MemoryFit planted{2.0e9, 1.5e5, 40};
  for (const std::int64_t batch : {1, 2, 4, 8}) {
    for (const std::int64_t length : {64, 128, 256, 512, 1024}) {
      const double noise = 1 + 0.002 * (2 * random.next_uniform() - 1);
      learner.add({batch, length, static_cast<Bytes>(planted.bytes(batch, length) * noise)});
    }
  }
  const MemoryFit fit = learner.fit();
  EXPECT_NEAR(fit.base, planted.base, 0.01 * planted.base);
  EXPECT_NEAR(fit.linear, planted.linear, 0.03 * planted.linear);
  EXPECT_NEAR(fit.quadratic, planted.quadratic, 0.05 * planted.quadratic);
  EXPECT_LT(fit.mean_error, 0.0025);  // mLoRA reports 0.25 %
  EXPECT_LE(fit.mean_error, fit.worst_error);
}

TEST(MemoryFit, OfFusedAttentionHasNoQuadraticTerm) {
  // Stashes are linear in tokens where scores are not kept; the fit must say so rather than go negative.
  MemoryLearner learner;
  const BackboneShape backbone = builtin_backbone("tinyllama-1.1b");
  for (const std::int64_t batch : {1, 4}) {
    for (const std::int64_t length : {100, 200, 400}) {
      MicrobatchLoad load;
      load.tokens = batch * length;
      load.sequences.assign(static_cast<std::size_t>(batch), {0, length});
      learner.add({batch, length,
                   backbone_bytes(backbone, {22, true, false}, cpu_storage()) +
                       stash_bytes(backbone, {22, true, false}, load, cpu_storage())});
    }
  }
  const MemoryFit fit = learner.fit();
  EXPECT_LT(fit.worst_error, 1e-6);
  EXPECT_NEAR(fit.quadratic, 0, 1e-3);
}

/// Any coefficients, some of them 0.
MemoryFit planted(RandomStream& random) {
  const auto draw = [&](double most) { return random.next_uniform() < 0.25 ? 0 : most * random.next_uniform(); };
  return {1e8 + draw(4e9), draw(2e5), draw(300)};
}

TEST(MemoryFit, MostIsNeverLessThanTheTruthAndSharpFromThreePointsOn) {
  RandomStream random(5);
  for (int run = 0; run < 300; ++run) {
    const MemoryFit truth = planted(random);
    const double error = run % 3 == 0 ? 1e-6 : 0.0025;
    MemoryLearner learner;
    const auto shape = [&] {
      return std::pair(1 + static_cast<std::int64_t>(16 * random.next_uniform()),
                       32 + static_cast<std::int64_t>(1000 * random.next_uniform()));
    };
    const auto taken = [&](const std::pair<std::int64_t, std::int64_t>& asked) {
      return truth.bytes(asked.first, asked.second) * (1 + error * (2 * random.next_uniform() - 1));
    };
    EXPECT_EQ(learner.most(1, 64, error), std::nullopt);
    double last = 0;
    for (int points = 1; points <= 8; ++points) {
      const auto measured = shape();
      learner.add({measured.first, measured.second, static_cast<Bytes>(taken(measured))});
      for (int ask = 0; ask < 5; ++ask) {
        const auto asked = shape();
        const double bytes = taken(asked);
        ASSERT_GE(learner.most(asked.first, asked.second, error).value(), bytes * (1 - 1e-6)) << run << " " << points;
      }
      // Another point never makes it looser.
      const double most = learner.most(8, 512, error).value();
      if (points > 1) {
        ASSERT_LE(most, last * (1 + 1e-9));
      }
      last = most;
    }
    if (run % 3 == 0) {
      EXPECT_NEAR(last / truth.bytes(8, 512), 1, 0.01) << run;
    }
  }
}

TEST(MemoryFit, MostOfOnePointGrowsAsItsFastestTerm) {
  MemoryLearner learner;
  learner.add({2, 100, 1'000'000});
  EXPECT_NEAR(learner.most(2, 200, 0).value(), 4e6, 1);  // all of it quadratic
  EXPECT_NEAR(learner.most(4, 100, 0).value(), 2e6, 1);
  EXPECT_NEAR(learner.most(1, 50, 0).value(), 1e6, 1);      // all of it constant
  EXPECT_NEAR(learner.most(2, 100, 0, 3).value(), 3e6, 1);  // all of it linear, with thrice the coefficient
  learner.add({2, 200, 1'000'000});                         // indeed
  EXPECT_NEAR(learner.most(8, 800, 0).value(), 1e6, 1);
  learner.add({4, 400, 500'000});  // less for more: no coefficients say that
  EXPECT_EQ(learner.most(8, 800, 0), std::nullopt);
}

TEST(MemoryFit, TooFewOrImpossiblePointsAreErrors) {
  MemoryLearner learner;
  learner.add({1, 64, 1000});
  learner.add({1, 128, 2000});
  expect_error([&] { learner.fit(); }, "2 measured points are too few to fit 3 coefficients");
  learner.add({1, 128, 0});
  expect_error([&] { learner.fit(); }, "a measured point of 0 bytes");
}

}  // namespace
}  // namespace braid::costmodel
