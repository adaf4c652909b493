#include "costmodel/memory_fit.h"

#include <gtest/gtest.h>

#include "base/random.h"
#include "costmodel/memory.h"
#include "costmodel/shapes.h"
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
                   backbone_bytes(backbone, {22, true, false}) + stash_bytes(backbone, {22, true, false}, load)});
    }
  }
  const MemoryFit fit = learner.fit();
  EXPECT_LT(fit.worst_error, 1e-6);
  EXPECT_NEAR(fit.quadratic, 0, 1e-3);
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
