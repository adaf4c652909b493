#include "costmodel/work/operators.h"

#include <array>
#include <map>
#include <tuple>

#include "costmodel/shapes.h"
#include "support.h"

namespace braid::costmodel {
namespace {

constexpr Pass kPasses[] = {Pass::forward, Pass::backward};
constexpr StageShape kWhole = {6, true, true};

/// Tokens that each kind of work goes over; attention apart by length, as it is not linear in it.
using Work = std::map<std::tuple<Operator, Pass, OperatorShape, std::int64_t, std::int64_t>, double>;

Work work_of(const std::vector<OperatorCall>& calls) {
  Work work;
  for (const OperatorCall& call : calls) {
    work[{call.op, call.pass, call.shape, call.context, call.prefix}] +=
        call.count * static_cast<double>(call.sequences * call.tokens);
  }
  return work;
}

Work sum(Work a, const Work& b) {
  for (const auto& [key, tokens] : b) a[key] += tokens;
  return a;
}

double times(const std::vector<OperatorCall>& calls, Operator op) {
  double count = 0;
  for (const OperatorCall& call : calls) count += call.op == op ? call.count : 0;
  return count;
}

bool is_lora(Operator op) {
  return op == Operator::lora || op == Operator::lora_dropout;
}

TEST(Operators, NamesRoundTrip) {
  for (int i = 0; i < kOperatorCount; ++i) {
    const auto op = static_cast<Operator>(i);
    EXPECT_FALSE(name(op).empty());
    EXPECT_EQ(operator_of(name(op)), op);
  }
  EXPECT_EQ(name(Operator::all_reduce), "all_reduce");
  for (const Pass pass : {Pass::forward, Pass::backward, Pass::parameters}) EXPECT_EQ(pass_of(name(pass)), pass);
  expect_error([] { operator_of("gemm"); }, "unknown operator 'gemm'; known: embedding, ", "all_reduce");
  expect_error([] { pass_of("sideways"); }, "unknown pass 'sideways'; known: forward, backward, parameters");
}

TEST(Operators, GroupsPartitionTheModules) {
  std::array<int, kModuleCount> seen{};
  for (const ModuleGroup group : kModuleGroups) {
    const std::span<const Module> modules = targets_of(group);
    for (const Module module : modules) {
      ++seen[static_cast<std::size_t>(module)];
      EXPECT_EQ(module_shape(small_backbone(), module).in, module_shape(small_backbone(), modules[0]).in);
    }
  }
  for (const int count : seen) EXPECT_EQ(count, 1);
}

TEST(Operators, LoraShapeCountsTargetsOnly) {
  const BackboneShape backbone = small_backbone();
  const AdapterShape shape = adapter(4, {Module::q, Module::v, Module::down});
  EXPECT_EQ(adapter_shape(backbone, shape, ModuleGroup::qkv), (OperatorShape{96, 120 + 40, 4, 2}));
  EXPECT_EQ(adapter_shape(backbone, shape, ModuleGroup::o)[3], 0);
  EXPECT_EQ(adapter_shape(backbone, shape, ModuleGroup::gate_up)[3], 0);
  EXPECT_EQ(adapter_shape(backbone, shape, ModuleGroup::down), (OperatorShape{250, 96, 4, 1}));
}

TEST(Operators, WorkOfTasksSideBySideIsTheSumOfTheirs) {
  const BackboneShape backbone = small_backbone();
  const MicrobatchLoad a = load_of(adapter_on_all(4), {10, 30});
  AdapterShape with_dropout = adapter_on_all(8);
  with_dropout.dropout = 0.1;
  const MicrobatchLoad b = load_of(with_dropout, {25});
  const MicrobatchLoad c = load_of(adapter_on_all(4), {30, 30, 7});
  for (const Pass pass : kPasses) {
    const auto work = [&](const MicrobatchLoad& load) {
      return work_of(stage_operators(backbone, kWhole, load, pass, cpu_storage()));
    };
    EXPECT_EQ(work(together(together(a, b), c)), sum(sum(work(a), work(b)), work(c)));
  }
}

TEST(Operators, AdaptersAloneTellTasksApart) {
  const BackboneShape backbone = small_backbone();
  const auto without_lora = [&](const AdapterShape& shape, Pass pass) {
    auto calls = stage_operators(backbone, kWhole, load_of(shape, {40}), pass, cpu_storage());
    std::erase_if(calls, [](const OperatorCall& call) { return is_lora(call.op); });
    return calls;
  };
  for (const Pass pass : kPasses) {
    EXPECT_EQ(without_lora(adapter_on_all(4), pass), without_lora(adapter_on_all(64), pass));
  }
  EXPECT_EQ(without_lora(adapter(4, {}), Pass::forward), without_lora(adapter_on_all(4), Pass::forward));
}

TEST(Operators, StagesOfASplitDoTheWorkOfTheWhole) {
  const BackboneShape backbone = small_backbone();
  const MicrobatchLoad load = together(load_of(adapter_on_all(4), {10, 30}), load_of(adapter(8, {Module::o}), {25}));
  for (const Pass pass : kPasses) {
    const auto work = [&](const StageShape& stage) {
      Work all = work_of(stage_operators(backbone, stage, load, pass, cpu_storage()));
      std::erase_if(all, [](const auto& entry) { return std::get<0>(entry.first) == Operator::dispatch; });
      return all;
    };
    const Work whole = work(kWhole);
    EXPECT_EQ(sum(work({1, true, false}), work({5, false, true})), whole);
    EXPECT_EQ(sum(sum(work({2, true, false}), work({3, false, false})), work({1, false, true})), whole);
  }
}

TEST(Operators, AttentionLaunchesOnceALayerForAllSequences) {
  const BackboneShape backbone = small_backbone();
  const MicrobatchLoad load = load_of(adapter_on_all(4), {10, 30, 10, 10, 25});
  const auto forward = stage_operators(backbone, kWhole, load, Pass::forward, cpu_storage());
  for (const auto& calls : {forward, stage_operators(backbone, kWhole, load, Pass::backward, cpu_storage())}) {
    double sequences = 0, launches = 0;
    for (const OperatorCall& call : calls) {
      if (call.op != Operator::attention) continue;
      EXPECT_EQ(call.count, 6);
      EXPECT_EQ(call.sequences, call.context == 10 ? 3 : 1);
      sequences += static_cast<double>(call.sequences) * call.count;
      launches += call.beside ? 0 : call.count;
    }
    EXPECT_EQ(sequences, 5.0 * 6);
    EXPECT_EQ(launches, 6);
  }
}

TEST(Operators, AChunkAttendsToWhatCameBefore) {
  MicrobatchLoad load = load_of(adapter_on_all(4), {});
  load.tokens = load.tasks[0].tokens = 12;
  load.sequences = {{30, 42}};
  int found = 0;
  for (const OperatorCall& call : stage_operators(small_backbone(), kWhole, load, Pass::forward, cpu_storage())) {
    if (call.op != Operator::attention) continue;
    ++found;
    EXPECT_EQ(call.tokens, 12);
    EXPECT_EQ(call.context, 42);
    EXPECT_EQ(call.prefix, 30);
  }
  EXPECT_EQ(found, 1);
}

TEST(Operators, NothingBelowTheLowestAdapterIsDifferentiated) {
  const BackboneShape backbone = small_backbone();
  const MicrobatchLoad feed_forward = load_of(adapter(4, {Module::down}), {20});
  const MicrobatchLoad attention = load_of(adapter(4, {Module::q}), {20});
  const auto backward = [&](const StageShape& stage, const MicrobatchLoad& load) {
    return stage_operators(backbone, stage, load, Pass::backward, cpu_storage());
  };
  EXPECT_EQ(times(backward({3, true, false}, feed_forward), Operator::attention), 2.0);
  EXPECT_EQ(times(backward({3, true, false}, attention), Operator::attention), 3.0);
  EXPECT_EQ(times(backward({3, false, false}, feed_forward), Operator::attention), 3.0);

  double parameters_only = 0;
  for (const OperatorCall& call : backward({3, true, false}, attention)) {
    if (call.pass == Pass::parameters) parameters_only += call.count;
  }
  EXPECT_EQ(parameters_only, 1.0);
  for (const OperatorCall& call : backward({3, false, false}, attention)) EXPECT_NE(call.pass, Pass::parameters);
}

TEST(Operators, WhatIsKeptIsNotComputedAgain) {
  const BackboneShape backbone = small_backbone();
  Storage keeps;
  keeps.keeps_operator_inputs = true;
  const auto again = [&](const AdapterShape& shape, const Storage& storage) {
    double calls = 0;
    for (const OperatorCall& call : stage_operators(backbone, kWhole, load_of(shape, {20}), Pass::backward, storage))
      calls += call.pass == Pass::forward && call.op != Operator::dispatch ? call.count : 0;
    return calls;
  };
  EXPECT_EQ(again(adapter_on_all(4), {}), 3.0 * 6);
  EXPECT_EQ(again(adapter(4, {Module::q, Module::o}), {}), 1.0 * 6);
  EXPECT_EQ(again(adapter_on_all(4), keeps), 0);
}

TEST(Operators, RecomputationRunsTheLayersForwardOnceMoreCollectivesAndAll) {
  const BackboneShape backbone = small_backbone();
  const MicrobatchLoad load = together(load_of(adapter_on_all(4), {10, 30}), load_of(adapter(8, {Module::o}), {25}));
  const Storage storage = gpu_storage(DataType::bf16);
  for (const bool ends : {false, true}) {
    const StageShape stage{6, ends, ends, 2};
    const auto work = [&](const StageShape& shape, Pass pass) {
      Work all = work_of(stage_operators(backbone, shape, load, pass, storage));
      all = sum(all, work_of(stage_collectives(backbone, shape, load, pass, storage)));
      std::erase_if(all, [](const auto& entry) { return std::get<0>(entry.first) == Operator::dispatch; });
      return all;
    };
    for (const std::int64_t count : {1L, 4L, 6L}) {
      StageShape again = stage;
      again.recompute = {RecomputeKind::full, count};
      EXPECT_EQ(work(again, Pass::forward), work(stage, Pass::forward));
      EXPECT_EQ(work(again, Pass::backward),
                sum(work(stage, Pass::backward), work({count, false, false, 2}, Pass::forward)));
    }
  }
}

TEST(Operators, SelectiveRecomputationRunsAttentionAndTheActivationForwardOnceMore) {
  for (const Architecture architecture : {Architecture::llama, Architecture::gpt2}) {
    BackboneShape backbone = small_backbone();
    backbone.architecture = architecture;
    const MicrobatchLoad load = load_of(adapter(8, {Module::o, Module::down}), {10, 30, 30});
    for (const bool keeps : {true, false}) {
      Storage storage = gpu_storage(DataType::bf16);
      storage.keeps_operator_inputs = keeps;
      const StageShape stage{6, true, true, 2};
      StageShape again = stage;
      again.recompute = {RecomputeKind::selective, 4};
      EXPECT_EQ(stage_operators(backbone, again, load, Pass::forward, storage),
                stage_operators(backbone, stage, load, Pass::forward, storage));
      EXPECT_EQ(stage_collectives(backbone, again, load, Pass::backward, storage),
                stage_collectives(backbone, stage, load, Pass::backward, storage));
      Work forward = work_of(stage_operators(backbone, {4, false, false, 2}, load, Pass::forward, storage));
      std::erase_if(forward, [&](const auto& entry) {
        const Operator op = std::get<0>(entry.first);
        // What is computed again anyway, as adapters read it, is so once.
        const bool middle = op == Operator::swiglu || op == Operator::gelu;
        return op != Operator::attention && !(middle && keeps);
      });
      EXPECT_EQ(work_of(stage_operators(backbone, again, load, Pass::backward, storage)),
                sum(work_of(stage_operators(backbone, stage, load, Pass::backward, storage)), forward));
    }
  }
}

TEST(Operators, TheHeadWorksOnRowsWithALossOrOnAll) {
  const BackboneShape backbone = small_backbone();
  MicrobatchLoad load = load_of(adapter_on_all(4), {20, 20});
  for (const std::int64_t scored : {0, 7}) {
    load.scored = scored;
    for (const bool all : {false, true}) {
      Storage storage;
      storage.whole_logits = all;
      const std::int64_t rows = all ? 40 : scored;
      EXPECT_EQ(head_rows(load, storage), rows);
      std::int64_t scores = 0, sums = 0;
      const StageShape stage{2, false, true, 2};
      for (const OperatorCall& call : stage_operators(backbone, stage, load, Pass::forward, storage))
        scores += call.op == Operator::head_loss ? call.tokens : 0;
      for (const OperatorCall& call : stage_collectives(backbone, stage, load, Pass::forward, storage))
        sums += static_cast<std::int64_t>(call.count) * call.tokens;
      EXPECT_EQ(scores, rows);
      EXPECT_EQ(sums, 4 * 40 * 4 * backbone.hidden + rows * 4 * (3 + backbone.hidden));
    }
  }
}

TEST(Operators, EmbeddingAndHeadBelongToTheirStages) {
  const BackboneShape backbone = small_backbone();
  const MicrobatchLoad load = load_of(adapter_on_all(4), {20, 20});
  const auto count = [&](const StageShape& stage, Operator op) {
    return times(stage_operators(backbone, stage, load, Pass::forward, cpu_storage()), op);
  };
  for (const bool has : {false, true}) {
    EXPECT_EQ(count({2, has, false}, Operator::embedding), has ? 1.0 : 0.0);
    EXPECT_EQ(count({2, false, has}, Operator::head_loss), has ? 1.0 : 0.0);
    EXPECT_EQ(count({2, has, has}, Operator::dispatch), 1.0);
  }
  for (const OperatorCall& call : stage_operators(backbone, kWhole, load, Pass::forward, cpu_storage())) {
    if (call.op == Operator::head_loss) {
      EXPECT_EQ(call.tokens, load.scored);
    }
  }
}

TEST(Operators, FlopsAreTwoAMultiplyAdd) {
  const BackboneShape backbone = small_backbone();
  constexpr double kTokens = 37;
  const MicrobatchLoad load = load_of(adapter_on_all(4), {37});
  const double linears = static_cast<double>(backbone.layer_parameters() - 2 * backbone.hidden);
  // QK^T and PV over the causal triangle; backward computes QK^T again and four gradients' products.
  const double triangle = 2 * kTokens * (kTokens + 1) / 2 * static_cast<double>(backbone.query_width());
  const double head = 4 * (kTokens - 1) * static_cast<double>(backbone.vocabulary * backbone.hidden);
  const auto flops = [&](const StageShape& stage, Pass pass) {
    return backbone_flops(stage_operators(backbone, stage, load, pass, cpu_storage()));
  };
  EXPECT_DOUBLE_EQ(flops({2, false, false}, Pass::forward), 2 * (2 * kTokens * linears + 2 * triangle));
  EXPECT_DOUBLE_EQ(flops({2, false, false}, Pass::backward), 2 * (2 * kTokens * linears + 5 * triangle));
  EXPECT_DOUBLE_EQ(flops({2, false, true}, Pass::forward) - flops({2, false, false}, Pass::forward), head);
}

TEST(Operators, ChunksOfASequenceHaveItsFlops) {
  const BackboneShape backbone = small_backbone();
  const auto flops = [&](std::int64_t prefix, std::int64_t context, Pass pass) {
    MicrobatchLoad load = load_of(adapter_on_all(4), {});
    load.tokens = load.tasks[0].tokens = context - prefix;
    load.sequences = {{prefix, context}};
    return backbone_flops(stage_operators(backbone, {3, false, false}, load, pass, cpu_storage()));
  };
  for (const Pass pass : kPasses) {
    EXPECT_DOUBLE_EQ(flops(0, 20, pass) + flops(20, 36, pass) + flops(36, 50, pass), flops(0, 50, pass));
  }
}

TEST(Operators, ShardsDivideTheProductsAndKeepWhatLiesBetween) {
  const BackboneShape backbone = builtin_backbone("llama2-70b");
  const MicrobatchLoad load = load_of(adapter_on_all(16), {512, 256});
  for (const Pass pass : kPasses) {
    const std::vector<OperatorCall> whole = stage_operators(backbone, {4, false, false}, load, pass, cpu_storage());
    for (const std::int64_t tp : {2, 4, 8}) {
      const std::vector<OperatorCall> shard =
          stage_operators(backbone, {4, false, false, tp}, load, pass, cpu_storage());
      ASSERT_EQ(shard.size(), whole.size());
      EXPECT_DOUBLE_EQ(backbone_flops(shard) * static_cast<double>(tp), backbone_flops(whole));
      for (std::size_t i = 0; i < whole.size(); ++i) {
        EXPECT_EQ(shard[i].op, whole[i].op);
        EXPECT_EQ(shard[i].tokens, whole[i].tokens);
        if (whole[i].op == Operator::rms_norm || whole[i].op == Operator::residual) {
          EXPECT_EQ(shard[i].shape, whole[i].shape);
        }
        if (is_lora(whole[i].op)) {
          EXPECT_EQ(shard[i].shape[0] * shard[i].shape[1] * tp, whole[i].shape[0] * whole[i].shape[1]);
        }
      }
      const auto split = stage_operators(backbone, {4, false, false, tp, true}, load, pass, cpu_storage());
      for (std::size_t i = 0; i < whole.size(); ++i) {
        const bool between = whole[i].op == Operator::rms_norm || whole[i].op == Operator::residual;
        EXPECT_EQ(split[i].tokens, between ? whole[i].tokens / tp : whole[i].tokens);
      }
    }
  }
}

TEST(Operators, ShardsOfALayerMeetTwiceInEachPass) {
  const BackboneShape backbone = small_backbone();
  const MicrobatchLoad load = load_of(adapter_on_all(4), {40});
  EXPECT_TRUE(stage_collectives(backbone, {6, true, true}, load, Pass::forward, gpu_storage(DataType::bf16)).empty());
  for (const Pass pass : kPasses) {
    const auto calls = stage_collectives(backbone, {6, false, false, 2}, load, pass, gpu_storage(DataType::bf16));
    ASSERT_EQ(calls.size(), 1U);
    EXPECT_EQ(calls[0].op, Operator::all_reduce);
    EXPECT_EQ(calls[0].shape, OperatorShape{2});
    EXPECT_EQ(calls[0].count, 12);
    EXPECT_EQ(calls[0].tokens, 40 * backbone.hidden * 2);
    const auto split = stage_collectives(backbone, {6, false, false, 2, true}, load, pass, gpu_storage(DataType::bf16));
    ASSERT_EQ(split.size(), 2U);
    EXPECT_EQ(split[0].op, Operator::reduce_scatter);
    EXPECT_EQ(split[1].op, Operator::all_gather);
    EXPECT_EQ(split[0].tokens, calls[0].tokens);
  }
  EXPECT_EQ(times(stage_collectives(backbone, {6, true, true, 2}, load, Pass::forward, gpu_storage(DataType::bf16)),
                  Operator::all_reduce),
            15);
}

TEST(Operators, HeadNormsAddOneCallALayerOnEveryWayThroughAttentionAndChangeNoOther) {
  const BackboneShape plain = small_backbone();
  BackboneShape normed = plain;
  normed.qk_norm = true;
  for (const Module target : {Module::q, Module::down}) {
    const MicrobatchLoad load = load_of(adapter(8, {target}), {30, 10});
    for (const std::int64_t tp : {1, 2}) {
      for (const Pass pass : kPasses) {
        auto calls = stage_operators(normed, {6, true, true, tp}, load, pass, cpu_storage());
        const bool skips_bottom = pass == Pass::backward && target == Module::down;
        EXPECT_EQ(times(calls, Operator::head_norm), skips_bottom ? 5 : 6);
        for (const OperatorCall& call : calls) {
          if (call.op != Operator::head_norm) continue;
          EXPECT_EQ(call.shape, (OperatorShape{6 / tp, 2 / tp, 20}));
          EXPECT_EQ(call.tokens, 40);
          EXPECT_EQ(call.pass, pass);
        }
        std::erase_if(calls, [](const OperatorCall& call) { return call.op == Operator::head_norm; });
        EXPECT_EQ(calls, stage_operators(plain, {6, true, true, tp}, load, pass, cpu_storage()));
      }
    }
  }
}

TEST(Operators, AFamilyWithoutGateAndRotationHasLayerNormsAndOneInputToItsActivation) {
  for (const char* name : {"gpt3-2.7b", "opt-30b"}) {
    const BackboneShape backbone = builtin_backbone(name);
    const MicrobatchLoad load = load_of(adapter(8, {Module::q, Module::up, Module::down}), {64});
    for (const Pass pass : kPasses) {
      const auto calls = stage_operators(backbone, {2, true, true}, load, pass, cpu_storage());
      EXPECT_EQ(times(calls, Operator::rms_norm) + times(calls, Operator::rope) + times(calls, Operator::swiglu), 0);
      EXPECT_GT(times(calls, Operator::layer_norm), 0);
      EXPECT_GT(times(calls, Operator::gelu), 0);
    }
    // 12 H² a layer a token, twice for a multiply-add; the rest is attention.
    const double linears = 2.0 * 12 * static_cast<double>(backbone.hidden * backbone.hidden) * 64;
    auto calls = stage_operators(backbone, {1, false, false}, load, Pass::forward, cpu_storage());
    std::erase_if(calls, [](const OperatorCall& call) { return call.op == Operator::attention; });
    EXPECT_DOUBLE_EQ(backbone_flops(calls), linears);
  }
}

}  // namespace
}  // namespace braid::costmodel
