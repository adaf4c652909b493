#include "costmodel/memory.h"

#include <gtest/gtest.h>

#include "costmodel/shapes.h"

namespace braid::costmodel {
namespace {

constexpr Bytes kFloat = 4;

MicrobatchLoad one_task(const AdapterShape& shape, std::int64_t tokens) {
  return load_of(shape, {tokens});
}

TEST(Memory, BackboneBytesAreAtLeastItsParameters) {
  const BackboneShape backbone = small_backbone();
  const Bytes whole = backbone_bytes(backbone, {backbone.layers, true, true});
  EXPECT_GE(whole, kFloat * backbone.parameters());
  EXPECT_LE(whole, 2 * kFloat * backbone.parameters()) << "two copies at most";
}

TEST(Memory, BackboneBytesOfStagesAddUpToTheWholes) {
  BackboneShape backbone = small_backbone();
  for (const bool bias : {false, true}) {
    backbone.qkv_bias = bias;
    const Bytes whole = backbone_bytes(backbone, {6, true, true});
    for (std::int64_t cut = 1; cut <= 6; ++cut) {
      EXPECT_EQ(backbone_bytes(backbone, {cut, true, false}) + backbone_bytes(backbone, {6 - cut, false, true}), whole);
      for (std::int64_t second = cut; second <= 6; ++second) {
        EXPECT_EQ(backbone_bytes(backbone, {cut, true, false}) +
                      backbone_bytes(backbone, {second - cut, false, false}) +
                      backbone_bytes(backbone, {6 - second, false, true}),
                  whole);
      }
    }
  }
}

TEST(Memory, ABottomLayerApartFromTheEmbeddingKeepsItsBackwardCopy) {
  const BackboneShape backbone = small_backbone();
  const Bytes apart = backbone_bytes(backbone, {0, true, false}) + backbone_bytes(backbone, {6, false, true});
  EXPECT_EQ(apart - backbone_bytes(backbone, {6, true, true}), kFloat * backbone.hidden * backbone.qkv_width());
  EXPECT_EQ(backbone_bytes(backbone, {0, true, false}), kFloat * backbone.embedding_parameters());
  EXPECT_EQ(backbone_bytes(backbone, {0, false, false}), 0);
}

TEST(Memory, AdapterBytesAreFourNumbersAParameterAndLinearInLayers) {
  const BackboneShape backbone = small_backbone();
  const AdapterShape shape = adapter(8, {Module::q, Module::up});
  EXPECT_EQ(adapter_bytes(backbone, shape, 1), 4 * kFloat * shape.layer_parameters(backbone));
  EXPECT_EQ(adapter_bytes(backbone, shape, 2) + adapter_bytes(backbone, shape, 4), adapter_bytes(backbone, shape, 6));
  EXPECT_EQ(adapter_bytes(backbone, shape, 0), 0);
  EXPECT_EQ(2 * adapter_bytes(backbone, shape, 3), adapter_bytes(backbone, adapter(16, {Module::q, Module::up}), 3));
}

TEST(Memory, StashesOfStagesAddUpToTheWholes) {
  const BackboneShape backbone = small_backbone();
  const MicrobatchLoad load = together(one_task(adapter_on_all(8), 50), one_task(adapter(4, {Module::v}), 31));
  EXPECT_EQ(stash_bytes(backbone, {2, true, false}, load) + stash_bytes(backbone, {4, false, true}, load),
            stash_bytes(backbone, {6, true, true}, load));
  const Bytes head = stash_bytes(backbone, {4, false, true}, load) - stash_bytes(backbone, {4, false, false}, load);
  EXPECT_EQ(head, load.tokens * message_bytes_per_token(backbone)) << "the gradient that the loss sends down";
}

TEST(Memory, StashesOfTasksSideBySideAddUp) {
  const BackboneShape backbone = small_backbone();
  const MicrobatchLoad a = one_task(adapter_on_all(8), 50), b = one_task(adapter(4, {Module::v}), 31);
  for (const bool head : {false, true}) {
    const StageShape stage = {3, false, head};
    EXPECT_EQ(stash_bytes(backbone, stage, a) + stash_bytes(backbone, stage, b),
              stash_bytes(backbone, stage, together(a, b)));
  }
}

TEST(Memory, MoreOfAnythingNeverTakesLess) {
  const BackboneShape backbone = small_backbone();
  for (const bool head : {false, true}) {
    Bytes stash = 0, workspace = 0;
    for (std::int64_t tokens = 2; tokens < 700; tokens += 7) {
      const MicrobatchLoad load = one_task(adapter_on_all(8), tokens);
      const StageShape stage = {3, true, head};
      EXPECT_GT(stash_bytes(backbone, stage, load), stash);
      EXPECT_GE(workspace_bytes(backbone, stage, load, Pass::backward), workspace);
      EXPECT_GE(workspace_bytes(backbone, stage, load, Pass::forward), 0);
      stash = stash_bytes(backbone, stage, load);
      workspace = workspace_bytes(backbone, stage, load, Pass::backward);
      EXPECT_GT(stash_bytes(backbone, {4, true, head}, load), stash);
      EXPECT_GT(stash_bytes(backbone, stage, one_task(adapter_on_all(9), tokens)), stash);
      EXPECT_GT(backbone_bytes(backbone, {4, true, head}), backbone_bytes(backbone, stage));
    }
  }
}

TEST(Memory, WorkspaceHoldsTheLogitsOfAtMostABlockOfRows) {
  BackboneShape backbone = small_backbone();
  backbone.vocabulary = 100000;
  const StageShape stage = {2, false, true};
  const auto logits = [&](std::int64_t scored) {
    MicrobatchLoad load = one_task(adapter_on_all(8), 2000);
    load.scored = scored;
    return workspace_bytes(backbone, stage, load, Pass::forward);
  };
  EXPECT_GE(logits(kHeadRows), kFloat * kHeadRows * backbone.vocabulary);
  EXPECT_LT(logits(10), logits(kHeadRows));
  EXPECT_EQ(logits(kHeadRows), logits(2000));
}

TEST(Memory, AMessageIsOneHiddenStateAToken) {
  EXPECT_EQ(message_bytes_per_token(small_backbone()), kFloat * 96);
}

}  // namespace
}  // namespace braid::costmodel
