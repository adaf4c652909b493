#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "costmodel/profile/cost_model.h"
#include "costmodel/shapes.h"

namespace braid::costmodel {
namespace {

/// `tasks` tasks of one adapter each, `tokens` tokens a task in one sequence.
MicrobatchLoad tasks_of(const AdapterShape& shape, std::int64_t tasks, std::int64_t tokens, AdapterKernels kernels) {
  MicrobatchLoad load;
  load.tokens = load.scored = tasks * tokens;
  load.sequences.assign(static_cast<std::size_t>(tasks), {0, tokens});
  load.tasks.assign(static_cast<std::size_t>(tasks), {shape, tokens});
  load.kernels = kernels;
  return load;
}

constexpr StageShape kLayers{2, false, false};

double launches(const Roofline& roofline, const std::vector<OperatorCall>& calls) {
  double count = 0;
  for (const OperatorCall& call : calls) count += call.beside ? 0 : call.count * roofline.cost(call).launches;
  return count;
}

TEST(AdapterKernels, BatchedTasksLaunchTheFrozenLayersOnceAndEachAdapterOnce) {
  // mLoRA §3.3.2: α + kβ in place of k (α + β).
  const BackboneShape backbone = builtin_backbone("tinyllama-1.1b");
  const Roofline roofline(device_of("a6000"), DataType::bf16);
  for (const Pass pass : {Pass::forward, Pass::backward}) {
    const auto count = [&](std::int64_t tasks, AdapterKernels kernels) {
      return launches(roofline, stage_operators(backbone, kLayers, tasks_of(adapter_on_all(8), tasks, 128, kernels),
                                                pass, cpu_storage()));
    };
    const double one = count(1, AdapterKernels::separate), two = count(2, AdapterKernels::separate);
    const double beta = two - one, alpha = one - beta;
    EXPECT_GT(alpha, 0);
    EXPECT_GT(beta, 0);
    for (const std::int64_t k : {3, 5, 8}) {
      const auto times = static_cast<double>(k);
      EXPECT_DOUBLE_EQ(count(k, AdapterKernels::separate), alpha + times * beta);
      EXPECT_LT(count(k, AdapterKernels::separate), times * one);
      EXPECT_DOUBLE_EQ(count(k, AdapterKernels::side_by_side), one) << "one launch holds all adapters";
      EXPECT_DOUBLE_EQ(count(k, AdapterKernels::fused), count(1, AdapterKernels::fused));
    }
  }
}

TEST(AdapterKernels, GraphPruningSavesCopiesOfTheWholeInputGradientForEachTask) {
  const BackboneShape backbone = builtin_backbone("llama2-7b");
  const CostModel cost(analytic_profile("a6000", DataType::bf16));
  const auto seconds = [&](AdapterKernels kernels, Pass pass, std::int64_t tasks) {
    const MicrobatchLoad load = tasks_of(adapter(16, {Module::q, Module::v}), tasks, 1024, kernels);
    return cost.estimate(stage_operators(backbone, kLayers, load, pass, cost.storage())).seconds;
  };
  EXPECT_EQ(seconds(AdapterKernels::split, Pass::forward, 4), seconds(AdapterKernels::separate, Pass::forward, 4));
  double last = 1;
  for (const std::int64_t tasks : {1, 2, 4, 8}) {
    const double over = seconds(AdapterKernels::split, Pass::backward, tasks) /
                        seconds(AdapterKernels::separate, Pass::backward, tasks);
    EXPECT_GT(over, last) << tasks;
    last = over;
  }
}

TEST(AdapterKernels, FusedOnesReadTheInputOnceAndWriteTheOutputOnce) {
  const Roofline roofline(device_of("h100"), DataType::bf16);
  const BackboneShape backbone = builtin_backbone("llama3.1-8b");
  const auto traffic = [&](AdapterKernels kernels, Pass pass) {
    AdapterShape shape = adapter_on_all(16);
    shape.dropout = 0.1;
    double bytes = 0;
    for (const OperatorCall& call :
         stage_operators(backbone, kLayers, tasks_of(shape, 1, 8192, kernels), pass, cpu_storage()))
      bytes += call.count * roofline.traffic(call);
    return bytes;
  };
  // Shape {in, out, rank, modules}: of each module X and A in and the low-rank product out, in 16 bits.
  EXPECT_DOUBLE_EQ(roofline.traffic({Operator::fused_lora, Pass::forward, {4096, 6144, 16, 3}, 1000}),
                   3 * 2.0 * (1000 * (4096 + 16) + 4096 * 16));
  for (const Pass pass : {Pass::forward, Pass::backward})
    EXPECT_LT(traffic(AdapterKernels::fused, pass), traffic(AdapterKernels::separate, pass));
}

TEST(AdapterKernels, DropoutMovesEachModulesInputAndAMaskOfAByteANumber) {
  const double tokens = 1000, in = 4096, modules = 3;
  for (const auto& [type, number] : {std::pair(DataType::bf16, 2.0), std::pair(DataType::f32, 4.0)}) {
    const Roofline roofline(device_of("h100"), type);
    const auto added = [&](Operator plain, Operator drops, Pass pass) {
      const OperatorShape shape{4096, 6144, 16, 3};
      return roofline.traffic({drops, pass, shape, 1000}) - roofline.traffic({plain, pass, shape, 1000});
    };
    for (const Pass pass : {Pass::forward, Pass::backward}) {
      EXPECT_NEAR(added(Operator::lora, Operator::lora_dropout, pass), modules * tokens * in * (2 * number + 1), 1e-3);
    }
    EXPECT_NEAR(added(Operator::lora, Operator::lora_dropout, Pass::parameters), 0, 1e-3) << "nothing below needs it";
    // Fused: masked copies and masks written beside the one read of X; the gradient of A reads the copy in place of X.
    EXPECT_NEAR(added(Operator::fused_lora, Operator::fused_lora_dropout, Pass::forward),
                modules * tokens * in * (number + 1), 1e-3);
    EXPECT_NEAR(added(Operator::fused_lora, Operator::fused_lora_dropout, Pass::backward), 0, 1e-3);
  }
}

TEST(AdapterKernels, FusedOnesAreFasterOnEveryGpuAndSeveralTasksPayForWholeTiles) {
  const BackboneShape backbone = builtin_backbone("llama3.1-8b");
  for (const std::string& gpu : device_names()) {
    const CostModel cost(analytic_profile(gpu, DataType::bf16));
    const auto seconds = [&](AdapterKernels kernels, std::int64_t tasks, std::int64_t tokens) {
      double sum = 0;
      for (const Pass pass : {Pass::forward, Pass::backward})
        sum += cost.estimate(stage_operators(backbone, kLayers, tasks_of(adapter_on_all(16), tasks, tokens, kernels),
                                             pass, cpu_storage()))
                   .seconds;
      return sum;
    };
    EXPECT_LT(seconds(AdapterKernels::fused, 1, 8192), seconds(AdapterKernels::separate, 1, 8192)) << gpu;
    EXPECT_LT(seconds(AdapterKernels::fused, 4, 2048), seconds(AdapterKernels::separate, 4, 2048)) << gpu;
    // 8 × 1000 rows are computed as 8 × 1024.
    EXPECT_GE(seconds(AdapterKernels::fused, 8, 1000), 0.99 * seconds(AdapterKernels::fused, 8, 1024)) << gpu;
  }
}

RC_GTEST_PROP(AdapterKernels, SideBySideTakesBetweenTheLongestAndTheSum, ()) {
  const std::vector<std::string> names = device_names();
  const Device& device = device_of(*rc::gen::elementOf(names));
  const CostModel cost(analytic_profile(std::string(device.name), DataType::bf16));
  const Roofline roofline(device, DataType::bf16);
  const auto count = *rc::gen::inRange<std::size_t>(1, 9);
  std::vector<OperatorCall> calls;
  double longest = 0, sum = 0, work = 0, launching = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const auto tokens = *rc::gen::inRange<std::int64_t>(1, 9000);
    const auto rank = *rc::gen::inRange<std::int64_t>(1, 129);
    calls.push_back({Operator::lora, Pass::forward, {4096, 4096, rank, 1}, tokens});
    calls.back().beside = i > 0;
    const double alone = roofline.seconds(calls.back()), used = roofline.utilization(calls.back());
    RC_ASSERT(used > 0 && used <= 1);
    longest = std::max(longest, alone);
    sum += alone;
    work += used * alone;
    launching = std::max(launching, roofline.cost(calls.back()).launches * 5e-6);
  }
  const double together = cost.estimate(calls).seconds;
  RC_ASSERT(together >= longest * (1 - 1e-12));
  RC_ASSERT(together <= std::max(sum, launching) * (1 + 1e-12));
  RC_ASSERT(std::abs(together - std::max({work, longest, launching})) <= 1e-12 * together + 1e-18);
}

TEST(AdapterKernels, TheOrderOfTasksSideBySideDoesNotMatter) {
  const CostModel cost(analytic_profile("h100", DataType::bf16));
  const BackboneShape backbone = builtin_backbone("tinyllama-1.1b");
  const auto seconds = [&](std::initializer_list<TaskRows> tasks) {
    MicrobatchLoad load;
    load.tasks = tasks;
    for (const TaskRows& task : load.tasks) load.tokens += task.tokens;
    load.sequences = {{0, load.tokens}};
    load.kernels = AdapterKernels::side_by_side;
    return cost.estimate(stage_operators(backbone, kLayers, load, Pass::forward, cost.storage())).seconds;
  };
  const TaskRows query{adapter(16, {Module::q}), 64}, all{adapter_on_all(16), 64};
  EXPECT_DOUBLE_EQ(seconds({query, all}), seconds({all, query}));
  EXPECT_LE(seconds({{query.adapter, 0}, all}), seconds({{query.adapter, 1}, all}));
}

TEST(AdapterKernels, FusedRowsAreFilledUpWhereTasksShareALaunchAndNowhereElse) {
  const BackboneShape backbone = builtin_backbone("llama2-7b");
  const auto rows = [&](std::initializer_list<TaskRows> tasks) {
    MicrobatchLoad load;
    load.tasks = tasks;
    for (const TaskRows& task : load.tasks) load.tokens += task.tokens;
    load.kernels = AdapterKernels::fused;
    for (const OperatorCall& call : stage_operators(backbone, kLayers, load, Pass::forward, cpu_storage())) {
      if (call.op == Operator::linear) return call.tokens;
    }
    return std::int64_t{0};
  };
  const AdapterShape lora = adapter(16, {Module::q}), none = adapter(16, {Module::down});
  EXPECT_EQ(rows({{lora, 129}}), 129);
  EXPECT_EQ(rows({{lora, 129}, {lora, 0}}), 129);
  EXPECT_EQ(rows({{lora, 129}, {none, 1000}}), 1129);
  EXPECT_EQ(rows({{lora, 129}, {lora, 100}, {none, 1000}}), 256 + 128 + 1000);
}

TEST(AdapterKernels, PackedSequencesAttendInOneLaunch) {
  const BackboneShape backbone = builtin_backbone("tinyllama-1.1b");
  const CostModel cost(analytic_profile("h100", DataType::bf16));
  const auto attention = [&](std::int64_t count, std::int64_t length) {
    MicrobatchLoad load = tasks_of(adapter(8, {Module::q}), 1, count * length, AdapterKernels::separate);
    load.sequences.assign(static_cast<std::size_t>(count), {0, length});
    auto calls = stage_operators(backbone, kLayers, load, Pass::forward, cpu_storage());
    std::erase_if(calls, [](const OperatorCall& call) { return call.op != Operator::attention; });
    return cost.estimate(calls).seconds;
  };
  EXPECT_LT(attention(256, 16), attention(8, 512));
  EXPECT_LT(attention(8, 512), attention(1, 4096));
}

}  // namespace
}  // namespace braid::costmodel
