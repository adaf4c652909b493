#include "costmodel/work/memory.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "costmodel/shapes.h"

namespace braid::costmodel {
namespace {

constexpr Bytes kFloat = 4;

MicrobatchLoad one_task(const AdapterShape& shape, std::int64_t tokens) {
  return load_of(shape, {tokens});
}

TEST(Memory, BackboneBytesAreAtLeastItsParameters) {
  const BackboneShape backbone = small_backbone();
  const Bytes whole = backbone_bytes(backbone, {backbone.layers, true, true}, cpu_storage());
  EXPECT_GE(whole, kFloat * backbone.parameters());
  EXPECT_LE(whole, 2 * kFloat * backbone.parameters()) << "two copies at most";
}

TEST(Memory, BackboneBytesOfStagesAddUpToTheWholes) {
  BackboneShape backbone = small_backbone();
  for (const bool more : {false, true}) {
    backbone.qkv_bias = backbone.qk_norm = more;
    const Bytes whole = backbone_bytes(backbone, {6, true, true}, cpu_storage());
    for (std::int64_t cut = 1; cut <= 6; ++cut) {
      EXPECT_EQ(backbone_bytes(backbone, {cut, true, false}, cpu_storage()) +
                    backbone_bytes(backbone, {6 - cut, false, true}, cpu_storage()),
                whole);
      for (std::int64_t second = cut; second <= 6; ++second) {
        EXPECT_EQ(backbone_bytes(backbone, {cut, true, false}, cpu_storage()) +
                      backbone_bytes(backbone, {second - cut, false, false}, cpu_storage()) +
                      backbone_bytes(backbone, {6 - second, false, true}, cpu_storage()),
                  whole);
      }
    }
  }
}

TEST(Memory, ABottomLayerApartFromTheEmbeddingKeepsItsBackwardCopy) {
  const BackboneShape backbone = small_backbone();
  const Bytes apart = backbone_bytes(backbone, {0, true, false}, cpu_storage()) +
                      backbone_bytes(backbone, {6, false, true}, cpu_storage());
  EXPECT_EQ(apart - backbone_bytes(backbone, {6, true, true}, cpu_storage()),
            kFloat * backbone.hidden * backbone.qkv_width());
  EXPECT_EQ(backbone_bytes(backbone, {0, true, false}, cpu_storage()), kFloat * backbone.embedding_parameters());
  EXPECT_EQ(backbone_bytes(backbone, {0, false, false}, cpu_storage()), 0);
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
  EXPECT_EQ(stash_bytes(backbone, {2, true, false}, load, cpu_storage()) +
                stash_bytes(backbone, {4, false, true}, load, cpu_storage()),
            stash_bytes(backbone, {6, true, true}, load, cpu_storage()));
  const Bytes head = stash_bytes(backbone, {4, false, true}, load, cpu_storage()) -
                     stash_bytes(backbone, {4, false, false}, load, cpu_storage());
  EXPECT_EQ(head, load.tokens * message_bytes_per_token(backbone, cpu_storage()))
      << "the gradient that the loss sends down";
}

TEST(Memory, StashesOfTasksSideBySideAddUp) {
  const BackboneShape backbone = small_backbone();
  const MicrobatchLoad a = one_task(adapter_on_all(8), 50), b = one_task(adapter(4, {Module::v}), 31);
  for (const bool head : {false, true}) {
    const StageShape stage = {3, false, head};
    EXPECT_EQ(stash_bytes(backbone, stage, a, cpu_storage()) + stash_bytes(backbone, stage, b, cpu_storage()),
              stash_bytes(backbone, stage, together(a, b), cpu_storage()));
  }
}

TEST(Memory, MoreOfAnythingNeverTakesLess) {
  const BackboneShape backbone = small_backbone();
  for (const bool head : {false, true}) {
    Bytes stash = 0, workspace = 0;
    for (std::int64_t tokens = 2; tokens < 700; tokens += 7) {
      const MicrobatchLoad load = one_task(adapter_on_all(8), tokens);
      const StageShape stage = {3, true, head};
      EXPECT_GT(stash_bytes(backbone, stage, load, cpu_storage()), stash);
      EXPECT_GE(workspace_bytes(backbone, stage, load, Pass::backward, cpu_storage()), workspace);
      EXPECT_GE(workspace_bytes(backbone, stage, load, Pass::forward, cpu_storage()), 0);
      stash = stash_bytes(backbone, stage, load, cpu_storage());
      workspace = workspace_bytes(backbone, stage, load, Pass::backward, cpu_storage());
      EXPECT_GT(stash_bytes(backbone, {4, true, head}, load, cpu_storage()), stash);
      EXPECT_GT(stash_bytes(backbone, stage, one_task(adapter_on_all(9), tokens), cpu_storage()), stash);
      EXPECT_GT(backbone_bytes(backbone, {4, true, head}, cpu_storage()),
                backbone_bytes(backbone, stage, cpu_storage()));
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
    return workspace_bytes(backbone, stage, load, Pass::forward, cpu_storage());
  };
  EXPECT_GE(logits(kHeadRows), kFloat * kHeadRows * backbone.vocabulary);
  EXPECT_LT(logits(10), logits(kHeadRows));
  EXPECT_EQ(logits(kHeadRows), logits(2000));
}

TEST(Memory, AHeadOverAllRowsHoldsTheLogitsOfRowsWithoutALoss) {
  const BackboneShape backbone = builtin_backbone("llama2-7b");
  MicrobatchLoad load = one_task(adapter_on_all(8), 4096);
  load.scored = 4;
  const Storage storage = gpu_storage(DataType::bf16);
  // In 16 bits, and three times in 32.
  EXPECT_GE(workspace_bytes(backbone, {2, false, true}, load, Pass::forward, storage),
            4096 * backbone.vocabulary * (2 + 3 * kFloat));
  Storage in_place = storage;
  in_place.loss_in_place = true;
  const auto head = [&](const Storage& of) {
    return workspace_bytes(backbone, {0, false, true}, load, Pass::forward, of);
  };
  // Two of three in f32 less, and a gradient in 16 bits more.
  EXPECT_EQ(head(storage) - head(in_place), 4096 * backbone.vocabulary * (2 * kFloat - 2));
}

TEST(Memory, WhenTheLossRunsNoLayerIsComputedAgain) {
  const BackboneShape backbone = builtin_backbone("llama2-7b");
  const Storage storage = gpu_storage(DataType::bf16);
  const MicrobatchLoad load = one_task(adapter_on_all(8), 4096);
  const auto forward = [&](std::int64_t layers, bool head) {
    const StageShape stage{layers, false, head, 1, false, {RecomputeKind::full, layers}};
    return workspace_bytes(backbone, stage, load, Pass::forward, storage);
  };
  EXPECT_EQ(forward(8, true), forward(0, true));
  EXPECT_GT(forward(0, true), forward(8, false));
}

TEST(Memory, RecomputationKeepsTheKeysAndValuesThatLaterChunksRead) {
  const BackboneShape backbone = builtin_backbone("llama3.1-8b");
  const Storage storage = gpu_storage(DataType::bf16);
  const StageShape stage{4, false, false, 1, false, {RecomputeKind::full, 4}};
  MicrobatchLoad load = load_of(adapter_on_all(8), {128, 128});
  const Bytes alone = stash_bytes(backbone, stage, load, storage);
  load.sequences = {{256, 384, true}, {0, 128, false}};
  EXPECT_EQ(stash_bytes(backbone, stage, load, storage) - alone, 2 * 4 * 2 * 128 * 8 * 128);
}

/// As PyTorch's autograd keeps tensors, without its allocator's rounding.
Storage autograd() {
  Storage storage = gpu_storage(DataType::bf16);
  storage.block = 1;
  return storage;
}

/// What adapters on these modules leave behind in a layer beside their low-rank products, in bytes a token.
Bytes kept_for_adapters(const BackboneShape& backbone, std::initializer_list<Module> modules, double dropout,
                        const Storage& storage, std::int64_t tp = 1) {
  constexpr std::int64_t kRows = 1024, kDepth = 3;
  AdapterShape some = adapter(8, modules);
  some.dropout = dropout;
  const StageShape stage{kDepth, false, false, tp};
  const Bytes low_rank = bytes_of(storage.activations) * kRows * kept_width(some, backbone);
  const Bytes kept = stash_bytes(backbone, stage, one_task(some, kRows), storage) -
                     stash_bytes(backbone, stage, one_task(adapter(8, {}), kRows), storage) - kDepth * low_rank;
  EXPECT_EQ(kept % (kDepth * kRows), 0);
  return kept / (kDepth * kRows);
}

TEST(Memory, AutogradKeepsALayersInputForItsAdaptersAlone) {
  for (const char* name : {"llama2-7b", "gpt3-2.7b"}) {
    const BackboneShape backbone = builtin_backbone(name);
    const Bytes hidden = 2 * backbone.hidden, activation = 2 * backbone.intermediate;
    const auto kept = [&](std::initializer_list<Module> modules) {
      return kept_for_adapters(backbone, modules, 0, autograd());
    };
    EXPECT_EQ(kept({Module::q}), hidden) << name;
    EXPECT_EQ(kept({Module::q, Module::k, Module::v}), hidden) << "one input of three";
    EXPECT_EQ(kept({Module::o}), 0) << "attention keeps its result itself";
    EXPECT_EQ(kept({Module::up}), hidden);
    EXPECT_EQ(kept({Module::up, Module::down}), hidden + activation);
    EXPECT_EQ(kept_for_adapters(backbone, {Module::q, Module::down}, 0, Storage{}), 0) << "computed again";
  }
}

TEST(Memory, LayersOfInt8WeightsKeepTheirInputWhoeverReadsIt) {
  const BackboneShape backbone = builtin_backbone("llama2-7b");
  Storage int8 = gpu_storage(DataType::int8);
  int8.block = 1;
  EXPECT_EQ(kept_for_adapters(backbone, {Module::q, Module::up, Module::down}, 0, int8), 0);
  const auto frozen = [&](const Storage& storage) {
    return stash_bytes(backbone, {1, false, false}, one_task(adapter(8, {}), 1000), storage);
  };
  EXPECT_EQ(frozen(int8) - frozen(autograd()), 2 * 1000 * (2 * backbone.hidden + backbone.intermediate));
}

TEST(Memory, WithDropoutAutogradKeepsEachModulesMaskedInputAndAMaskOfAByteANumber) {
  const BackboneShape backbone = builtin_backbone("llama2-7b");
  constexpr Bytes kNumberAndMask = 2 + 1;
  const Bytes hidden = kNumberAndMask * backbone.hidden, activation = kNumberAndMask * backbone.intermediate;
  const auto kept = [&](std::initializer_list<Module> modules, const Storage& storage, std::int64_t tp) {
    return kept_for_adapters(backbone, modules, 0.1, storage, tp);
  };
  EXPECT_EQ(kept({Module::q}, autograd(), 1), hidden);
  EXPECT_EQ(kept({Module::q, Module::k, Module::v}, autograd(), 1), 3 * hidden);
  EXPECT_EQ(kept({Module::o}, autograd(), 1), hidden);
  EXPECT_EQ(kept({Module::up, Module::down}, autograd(), 1), hidden + activation);
  // A shard has all of a column-parallel layer's input and its share of a row-parallel one's.
  EXPECT_EQ(kept({Module::q, Module::o}, autograd(), 4), hidden + hidden / 4);
  EXPECT_EQ(kept({Module::q, Module::down}, Storage{}, 1), 0) << "drawn again";
}

TEST(Memory, RecomputationBringsMaskedInputsBackForOneLayer) {
  const BackboneShape backbone = builtin_backbone("llama2-7b");
  const StageShape layers{3, false, false, 1, false, {RecomputeKind::full, 3}};
  constexpr std::int64_t kTokens = 1024;
  AdapterShape plain = adapter(8, {Module::gate, Module::up}), drops = plain;
  drops.dropout = 0.1;
  const auto added = [&](const Storage& storage) {
    return workspace_bytes(backbone, layers, one_task(drops, kTokens), Pass::forward, storage) -
           workspace_bytes(backbone, layers, one_task(plain, kTokens), Pass::forward, storage);
  };
  const Bytes hidden = kTokens * backbone.hidden;
  // Two masked inputs and masks in place of the input of both; the input itself is freed when the layer ends.
  EXPECT_EQ(added(autograd()), 2 * 3 * hidden - 2 * hidden);
}

RC_GTEST_PROP(Memory, StashesAddUpOverStagesAndTasksOfAnyShape, ()) {
  const BackboneShape backbone =
      builtin_backbone(*rc::gen::element("llama2-7b", "gpt3-2.7b", "opt-30b", "qwen2.5-32b"));
  Storage storage = autograd();
  storage.weights = *rc::gen::element(DataType::bf16, DataType::int8);
  storage.fused_activation = *rc::gen::arbitrary<bool>();
  const auto any_task = [&] {
    AdapterShape shape = adapter(*rc::gen::inRange<std::int64_t>(1, 130), {Module::q, Module::up});
    shape.dropout = *rc::gen::element(0.0, 0.1);
    return one_task(shape, *rc::gen::inRange<std::int64_t>(1, 5000));
  };
  const MicrobatchLoad one = any_task(), other = any_task();
  const auto layers = *rc::gen::inRange<std::int64_t>(1, 40), cut = *rc::gen::inRange<std::int64_t>(0, layers + 1);
  const std::int64_t tp = *rc::gen::element<std::int64_t>(1, 2, 8);
  const auto bytes = [&](std::int64_t count, bool bottom, bool top, const MicrobatchLoad& load) {
    return stash_bytes(backbone, {count, bottom, top, tp}, load, storage);
  };
  RC_ASSERT(bytes(cut, true, false, one) + bytes(layers - cut, false, true, one) == bytes(layers, true, true, one));
  // What only one of two tasks reads, both keep in a batch of both: never less than apart.
  RC_ASSERT(bytes(layers, true, true, together(one, other)) >=
            bytes(layers, true, true, one) + bytes(layers, true, true, other));
  if (one.tasks.front().adapter.dropout == other.tasks.front().adapter.dropout)
    RC_ASSERT(bytes(layers, true, true, together(one, other)) ==
              bytes(layers, true, true, one) + bytes(layers, true, true, other));
}

TEST(Memory, AFusedActivationKeepsItsInputsAlone) {
  const BackboneShape llama = builtin_backbone("llama2-7b"), gpt = builtin_backbone("gpt3-2.7b");
  const auto stash = [](const BackboneShape& backbone, bool fused) {
    Storage storage = autograd();
    storage.fused_activation = fused;
    return stash_bytes(backbone, {1, false, false}, one_task(adapter_on_all(8), 1000), storage);
  };
  EXPECT_EQ(stash(llama, false) - stash(llama, true), 2 * 1000 * llama.intermediate);
  EXPECT_EQ(stash(gpt, false), stash(gpt, true)) << "GELU has no gate";
}

TEST(Memory, AMessageIsOneHiddenStateAToken) {
  EXPECT_EQ(message_bytes_per_token(small_backbone(), cpu_storage()), kFloat * 96);
}

TEST(Memory, ShardsAddUpToTheWholeWhereEverythingIsDivided) {
  const BackboneShape backbone = builtin_backbone("llama2-70b");
  Storage storage = gpu_storage(DataType::bf16);
  storage.block = 1;
  const AdapterShape shape = adapter(16, {Module::q});
  const MicrobatchLoad load = load_of(shape, {512});
  for (const std::int64_t tp : {2, 4, 8}) {
    const StageShape whole{4, true, false}, shard{4, true, false, tp};
    const Bytes vectors =
        backbone_bytes(backbone, {4, false, false, tp}, storage) - 2 * 4 * backbone.linear_parameters() / tp;
    EXPECT_EQ(vectors, 2 * 4 * backbone.vector_parameters()) << "norms are whole on every shard";
    EXPECT_EQ(tp * (backbone_bytes(backbone, shard, storage) - vectors),
              backbone_bytes(backbone, whole, storage) - vectors);
    const Bytes one = layer_stash_bytes(backbone, {1, false, false}, load, storage, RecomputeKind::none);
    const Bytes part = layer_stash_bytes(backbone, {1, false, false, tp}, load, storage, RecomputeKind::none);
    EXPECT_GE(part * tp, one);
    EXPECT_LT(part, one);
    // Sequence parallelism divides the rows between the products.
    const Bytes divided = layer_stash_bytes(backbone, {1, false, false, tp, true}, load, storage, RecomputeKind::none);
    EXPECT_EQ(part - divided, 2 * (512 - 512 / tp) * (2 * backbone.hidden + 2));
  }
}

TEST(Memory, RecomputationKeepsEachLayersInputAndNeedsOneLayerAgain) {
  const BackboneShape backbone = builtin_backbone("llama2-7b");
  const MicrobatchLoad load = load_of(adapter_on_all(16), {1024});
  for (const DataType type : {DataType::f32, DataType::bf16, DataType::int8}) {
    const Storage keeps = gpu_storage(type);
    const StageShape stage{8, false, false}, again{8, false, false, 1, false, {RecomputeKind::full, 8}};
    EXPECT_EQ(stash_bytes(backbone, again, load, keeps), 8 * 1024 * backbone.hidden * bytes_of(keeps.activations));
    for (const Pass pass : {Pass::forward, Pass::backward})
      EXPECT_EQ(
          workspace_bytes(backbone, again, load, pass, keeps) - workspace_bytes(backbone, stage, load, pass, keeps),
          (stash_bytes(backbone, stage, load, keeps) - stash_bytes(backbone, again, load, keeps)) / 8)
          << "the layer's input is kept all the same";
  }
}

/// Everything that a stage holds of one microbatch at its fullest moment, layer by layer: all layers below the running
/// one as they are stashed, that one in whole, and what it works with.
Bytes fullest_moment(const BackboneShape& backbone, const StageShape& stage, const MicrobatchLoad& load, Pass pass,
                     const Storage& storage) {
  Bytes most = 0, below = 0;
  const Bytes scratch = workspace_bytes(backbone, {stage.layers, false, false}, load, pass, storage);
  for (std::int64_t layer = 0; layer < stage.layers; ++layer) {
    const RecomputeKind kind = layer < stage.recompute.layers ? stage.recompute.kind : RecomputeKind::none;
    most = std::max(most, below + layer_stash_bytes(backbone, stage, load, storage, RecomputeKind::none) + scratch);
    below += layer_stash_bytes(backbone, stage, load, storage, kind);
  }
  return most;
}

RC_GTEST_PROP(Memory, OfAPartlyRecomputedStageTheFullestMomentIsHeld, ()) {
  const BackboneShape backbone = builtin_backbone(*rc::gen::element("llama2-7b", "gpt3-2.7b", "qwen2.5-32b"));
  const MicrobatchLoad load = load_of(adapter_on_all(*rc::gen::element(8, 64)), {*rc::gen::inRange(64, 3000)});
  const auto layers = *rc::gen::inRange<std::int64_t>(1, 9);
  const RecomputeKind kind = *rc::gen::element(RecomputeKind::selective, RecomputeKind::full);
  const StageShape stage{layers, false, false, 1, false, {kind, *rc::gen::inRange<std::int64_t>(1, layers + 1)}};
  for (const Pass pass : {Pass::forward, Pass::backward})
    RC_ASSERT(stash_bytes(backbone, stage, load, autograd()) +
                  workspace_bytes(backbone, stage, load, pass, autograd()) ==
              fullest_moment(backbone, stage, load, pass, autograd()));
}

TEST(Memory, MoreRecomputationKeepsLess) {
  const BackboneShape backbone = builtin_backbone("llama3.1-8b");
  for (const AttentionKind attention : {AttentionKind::flash, AttentionKind::eager}) {
    Storage storage = gpu_storage(DataType::bf16);
    storage.attention = attention;
    for (const double dropout : {0.0, 0.1}) {
      AdapterShape shape = adapter_on_all(16);
      shape.dropout = dropout;
      const MicrobatchLoad load = load_of(shape, {2048});
      const auto stash = [&](RecomputeKind kind, std::int64_t layers) {
        return stash_bytes(backbone, {8, false, false, 1, false, {kind, layers}}, load, storage);
      };
      for (std::int64_t layers = 1; layers <= 8; ++layers) {
        EXPECT_LT(stash(RecomputeKind::selective, layers), stash(RecomputeKind::selective, layers - 1));
        EXPECT_LT(stash(RecomputeKind::full, layers), stash(RecomputeKind::selective, layers));
      }
    }
  }
}

TEST(Memory, EagerAttentionTakesTheSquareOfALengthAndFlashAttentionDoesNot) {
  const BackboneShape backbone = small_backbone();
  Storage storage = gpu_storage(DataType::f32);
  storage.block = 1;
  const auto stash = [&](std::int64_t length) {
    return stash_bytes(backbone, {6, false, false}, load_of(adapter_on_all(8), {length}), storage);
  };
  EXPECT_EQ(stash(200), 2 * stash(100));
  const Bytes flash = stash(100);
  storage.attention = AttentionKind::eager;
  const std::int64_t log_sums = 100 * backbone.heads, scores = 100 * 100 * backbone.heads;
  EXPECT_EQ(stash(100) - flash, 6 * kFloat * (scores - log_sums));
  storage = gpu_storage(DataType::bf16);
  storage.block = 1;
  const Bytes flash_bf16 = stash(100);
  storage.attention = AttentionKind::eager;
  EXPECT_EQ(stash(100) - flash_bf16, 6 * (scores * (kFloat + 2) - 2 * log_sums));
}

/// Beside what is kept, in bytes a score: masked scores with their cast or what they were before; two gradients of the
/// probabilities in f32 and one of the scores.
TEST(Memory, EagerAttentionWorksOnScoresBesideThose) {
  const BackboneShape backbone = small_backbone();
  const MicrobatchLoad load = load_of(adapter_on_all(8), {3000});
  const std::int64_t scores = 3000 * 3000 * backbone.heads;
  for (const auto& [type, forward, backward] :
       {std::tuple(DataType::bf16, 6, 12), std::tuple(DataType::f16, 4, 10), std::tuple(DataType::f32, 8, 12)}) {
    Storage storage = gpu_storage(type);
    for (const Pass pass : {Pass::forward, Pass::backward}) {
      storage.attention = AttentionKind::flash;
      const Bytes flash = workspace_bytes(backbone, {2, false, false}, load, pass, storage);
      storage.attention = AttentionKind::eager;
      const Bytes eager = workspace_bytes(backbone, {2, false, false}, load, pass, storage);
      const Bytes alone = scores * (pass == Pass::forward ? forward : backward);
      EXPECT_GE(eager, alone);
      EXPECT_LE(eager, alone + flash);
    }
  }
}

TEST(Memory, Int8HalvesTheProductsOfSixteenBitsAndNothingElse) {
  const BackboneShape backbone = builtin_backbone("llama2-13b");
  const StageShape stage{40, true, true};
  EXPECT_EQ(backbone_bytes(backbone, stage, gpu_storage(DataType::bf16)) -
                backbone_bytes(backbone, stage, gpu_storage(DataType::int8)),
            40 * backbone.linear_parameters());
  const MicrobatchLoad load = load_of(adapter_on_all(8), {512});
  EXPECT_EQ(stash_bytes(backbone, stage, load, gpu_storage(DataType::bf16)),
            stash_bytes(backbone, stage, load, gpu_storage(DataType::int8)));
}

TEST(Memory, AChunkHoldsGradientsOfTheKeysAndValuesItRead) {
  const BackboneShape backbone = builtin_backbone("llama3.1-8b");
  const Storage storage = gpu_storage(DataType::bf16);
  MicrobatchLoad load = load_of(adapter_on_all(8), {128});
  EXPECT_EQ(chunk_gradient_bytes(backbone, {4, false, false}, load, storage), 0);
  load.sequences = {{256, 384}};
  EXPECT_EQ(chunk_gradient_bytes(backbone, {4, false, false}, load, storage), 2 * 4 * 2 * 256 * 8 * 128);
  EXPECT_EQ(chunk_gradient_bytes(backbone, {4, false, false, 8}, load, storage), 2 * 4 * 2 * 256 * 128);
}

TEST(Memory, BlocksRoundLargeTensorsUp) {
  const BackboneShape backbone = builtin_backbone("llama2-7b");
  Storage storage = gpu_storage(DataType::bf16);
  const MicrobatchLoad load = load_of(adapter_on_all(16), {3000});
  const Bytes rounded = stash_bytes(backbone, {2, false, false}, load, storage);
  storage.block = 1;
  const Bytes exact = stash_bytes(backbone, {2, false, false}, load, storage);
  EXPECT_GT(rounded, exact);
  EXPECT_LT(rounded, exact + 2 * 10 * (Bytes{2} << 20));
}

}  // namespace
}  // namespace braid::costmodel
