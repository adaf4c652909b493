#include "costmodel/gpu/roofline.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "costmodel/gpu/gpu_kernels.h"
#include "costmodel/profile/cost_model.h"
#include "costmodel/profile/derive.h"
#include "costmodel/shapes.h"
#include "support.h"

namespace braid::costmodel {
namespace {

/// What a layer of Llama-2-7B does for one task of `tokens` tokens in sequences of `length`.
std::vector<OperatorCall> layer_calls(std::int64_t tokens, std::int64_t length, Pass pass, double dropout = 0) {
  AdapterShape shape = adapter(16, {Module::q, Module::k, Module::v, Module::o});
  shape.dropout = dropout;
  MicrobatchLoad load;
  load.tokens = load.scored = tokens;
  load.tasks = {{shape, tokens}};
  for (std::int64_t first = 0; first < tokens; first += length)
    load.sequences.push_back({0, std::min(length, tokens - first)});
  return stage_operators(builtin_backbone("llama2-7b"), {1, true, true}, load, pass, cpu_storage());
}

double sum(const Roofline& roofline, const std::vector<OperatorCall>& calls) {
  double seconds = 0;
  for (const OperatorCall& call : calls) seconds += call.count * roofline.seconds(call);
  return seconds;
}

TEST(Roofline, NeverFallsWithMoreTokens) {
  for (const std::string& name : device_names()) {
    for (const DataType type : {DataType::bf16, DataType::f32}) {
      const Roofline roofline(device_of(name), type);
      for (const Pass pass : {Pass::forward, Pass::backward}) {
        double last = 0;
        for (std::int64_t tokens = 64; tokens <= 8192; tokens += 64) {
          const double now = sum(roofline, layer_calls(tokens, 64, pass, 0.05));
          EXPECT_GE(now, last) << name << " " << tokens;
          last = now;
        }
      }
    }
  }
}

TEST(Roofline, NeverLiesBelowFlopsAtPeak) {
  for (const std::string& name : device_names()) {
    const Device& device = device_of(name);
    const Roofline roofline(device, DataType::bf16);
    for (const std::int64_t tokens : {64, 1000, 8192}) {
      for (const Pass pass : {Pass::forward, Pass::backward}) {
        const std::vector<OperatorCall> calls = layer_calls(tokens, 500, pass);
        EXPECT_GE(sum(roofline, calls), backbone_flops(calls) / device.peak_flops(DataType::bf16)) << name;
      }
    }
  }
}

TEST(Roofline, ForwardAndBackwardOfAFrozenLayerCostAboutTheSame) {
  // Frozen layers have no weight gradient: the published ratio in LoRA fine-tuning is 0.99 to 1.28.
  const Roofline roofline(device_of("a100-80"), DataType::bf16);
  AdapterShape none = adapter(1, {});
  MicrobatchLoad load;
  load.tokens = load.scored = 4096;
  load.tasks = {{none, 4096}};
  load.sequences.assign(8, {0, 512});
  const BackboneShape backbone = builtin_backbone("llama2-7b");
  const double ratio =
      sum(roofline, stage_operators(backbone, {4, false, false}, load, Pass::backward, cpu_storage())) /
      sum(roofline, stage_operators(backbone, {4, false, false}, load, Pass::forward, cpu_storage()));
  EXPECT_GT(ratio, 0.95);
  EXPECT_LT(ratio, 1.3);
}

TEST(Roofline, SmallWorkIsBoundByTheHostAndLargeWorkIsNot) {
  const Profile profile = analytic_profile("h100", DataType::bf16);
  const CostModel cost(profile);
  const Roofline roofline(device_of("h100"), DataType::bf16);
  for (const std::int64_t tokens : {64, 128, 8192}) {
    for (const Pass pass : {Pass::forward, Pass::backward}) {
      const std::vector<OperatorCall> calls = layer_calls(tokens, 64, pass);
      double host = 0;
      for (const OperatorCall& call : calls) host += call.count * roofline.cost(call).launches * 5e-6;
      EXPECT_DOUBLE_EQ(cost.estimate(calls).seconds, std::max(host, sum(roofline, calls)));
      if (tokens == 8192) {
        EXPECT_LT(host, 0.2 * sum(roofline, calls));
      }
    }
  }
  AdapterShape shape = adapter_on_all(8);
  shape.dropout = 0.1;
  const std::vector<OperatorCall> tiny =
      stage_operators(small_backbone(), {6, false, false}, load_of(shape, {8, 8}), Pass::forward, cpu_storage());
  EXPECT_GT(cost.estimate(tiny).seconds, 1.2 * sum(roofline, tiny)) << "the host cannot keep up";
}

TEST(Roofline, MessagesNeedALink) {
  expect_error(
      [] {
        Roofline(device_of("a40"), DataType::bf16).seconds({Operator::send_recv, Pass::forward, {}, 64});
      },
      "'send_recv' needs a link between GPUs");
}

TEST(CostModel, WithADeviceAnswersEverythingAndCountsItAsExtrapolated) {
  Profile profile = analytic_profile("h100", DataType::bf16);
  const Estimate estimate = CostModel(profile).estimate(layer_calls(1024, 128, Pass::forward));
  EXPECT_GT(estimate.seconds, 0);
  EXPECT_EQ(estimate.extrapolated_seconds, estimate.seconds);
  const OperatorCall message{Operator::send_recv, Pass::forward, {}, 1 << 20};
  expect_error([&] { CostModel(profile).estimate(message); }, "knows no link between GPUs");
  profile.interconnect.intra_node = {"custom", 1e9, 1e-5};
  EXPECT_DOUBLE_EQ(CostModel(profile).estimate(message).seconds, 1e-5 + (1 << 20) / 1e9);
  const OperatorCall reduction{Operator::all_reduce, Pass::forward, {4}, 1 << 20};
  EXPECT_DOUBLE_EQ(CostModel(profile).estimate(reduction).seconds, 6 * (1e-5 + (1 << 18) / 1e9));
}

TEST(Profile, OfADeviceSurvivesItsFileAndAnswersAsItsEntriesDo) {
  Profile profile = analytic_profile("a40", DataType::f16);
  const std::vector<AdapterShape> adapters = {adapter(8, {Module::q}), adapter(16, {Module::q, Module::down})};
  profile.entries = derived_entries(profile, builtin_backbone("tinyllama-1.1b"), adapters, 4096, 256);
  ASSERT_GT(profile.entries.size(), 100U);
  const TestFolder folder;
  const Profile read = read_profile(folder.write("a40.json", to_json(profile)));
  EXPECT_EQ(to_json(read), to_json(profile));
  std::int64_t unanswered = 0;
  for (const Disagreement& one : compare_profiles(profile, read, unanswered)) EXPECT_NEAR(one.ratio(), 1, 1e-9);
  EXPECT_EQ(unanswered, 0);
  std::string text = to_json(profile);
  text.replace(text.find("\"a40\","), 6, "\"a41\",");
  expect_error([&] { read_profile(folder.write("b.json", text)); }, "unknown GPU 'a41'");
}

TEST(Memory, OfLlama7BOnAGpuIsWhatMuxTuneReports) {
  // §2.2: batch 8 of 128 tokens, LoRA: backbone 13.4 GB, activations 4.3 GB, 18.1 GB in all.
  const BackboneShape backbone = builtin_backbone("llama2-7b");
  const StageShape whole{backbone.layers, true, true};
  const Storage storage = gpu_storage(DataType::f16);
  const AdapterShape lora = adapter(16, {Module::q, Module::k, Module::v, Module::o});
  MicrobatchLoad load = load_of(lora, {128, 128, 128, 128, 128, 128, 128, 128});
  const auto gigabytes = [](Bytes bytes) { return static_cast<double>(bytes) / 1e9; };
  EXPECT_NEAR(gigabytes(backbone_bytes(backbone, whole, storage)), 13.4, 0.05 * 13.4);
  EXPECT_NEAR(gigabytes(stash_bytes(backbone, whole, load, storage)), 4.3, 0.05 * 4.3);
  const Bytes all = backbone_bytes(backbone, whole, storage) + stash_bytes(backbone, whole, load, storage) +
                    adapter_bytes(backbone, lora, backbone.layers) + storage.context;
  EXPECT_NEAR(gigabytes(all), 18.1, 0.05 * 18.1);
}

/// A backbone of any family whose heads and columns divide by 16.
BackboneShape any_backbone() {
  BackboneShape shape;
  shape.architecture =
      *rc::gen::element(Architecture::llama, Architecture::qwen2, Architecture::gpt2, Architecture::opt);
  shape.layers = *rc::gen::inRange<std::int64_t>(1, 5);
  shape.heads = 16 * *rc::gen::inRange<std::int64_t>(1, 5);
  shape.head_dim = 16 * *rc::gen::inRange<std::int64_t>(1, 9);
  shape.kv_heads = shape.gated() ? shape.heads / *rc::gen::element<std::int64_t>(1, 2, 4, 8, 16) : shape.heads;
  shape.hidden = shape.heads * shape.head_dim;
  shape.intermediate = 16 * *rc::gen::inRange<std::int64_t>(16, 1000);
  shape.vocabulary = 16 * *rc::gen::inRange<std::int64_t>(16, 8000);
  shape.max_position = 4096;
  return shape;
}

/// Any GPU, as it is, clocked lower, fitted on its own points, or attending eagerly.
Profile any_profile() {
  Profile profile = analytic_profile(*rc::gen::elementOf(device_names()),
                                     *rc::gen::element(DataType::f32, DataType::bf16, DataType::f16, DataType::int8));
  profile.clock = *rc::gen::element(1.0, 0.75, 0.3);
  profile.attention = *rc::gen::element(AttentionKind::flash, AttentionKind::eager);
  profile.exposed_launch_seconds = *rc::gen::element(0.0, 2e-5);
  if (*rc::gen::arbitrary<bool>()) {
    GemmCoefficients products = gemm_coefficients(Generation::ampere);
    products.rate_efficiency = 0.01 * *rc::gen::inRange(1, 101);
    products.bandwidth_efficiency = 0.01 * *rc::gen::inRange(1, 101);
    products.wave_rounding = 0.01 * *rc::gen::inRange(0, 101);
    products.block_seconds = 1e-8 * *rc::gen::inRange(0, 500);
    products.split_cost = 0.1 * *rc::gen::inRange(0, 50);
    profile.products = products;
    profile.copies = StreamCoefficients{1e-6 * *rc::gen::inRange(0, 9), 0.1 * *rc::gen::inRange(0, 30),
                                        0.1 * *rc::gen::inRange(0, 30)};
  }
  return profile;
}

RC_GTEST_PROP(Roofline, StagesObeyTheLawsOnRandomShapes, ()) {
  const Profile profile = any_profile();
  const Roofline roofline(profile);
  const BackboneShape backbone = any_backbone();
  AdapterShape shape =
      adapter(*rc::gen::inRange<std::int64_t>(1, 130), {Module::q, Module::o, Module::up, Module::down});
  shape.dropout = *rc::gen::element(0.0, 0.1);
  const Pass pass = *rc::gen::element(Pass::forward, Pass::backward);
  const auto tokens = *rc::gen::inRange<std::int64_t>(1, 5000), more = *rc::gen::inRange<std::int64_t>(1, 5000);
  const auto kernels = *rc::gen::element(AdapterKernels::separate, AdapterKernels::split, AdapterKernels::fused);
  const Recompute recompute{*rc::gen::element(RecomputeKind::none, RecomputeKind::selective, RecomputeKind::full),
                            *rc::gen::inRange<std::int64_t>(0, backbone.layers + 1)};
  const auto calls = [&](std::int64_t count, std::int64_t tp) {
    MicrobatchLoad load = load_of(shape, {count});
    load.kernels = kernels;
    return stage_operators(backbone, {backbone.layers, true, true, tp, false, recompute}, load, pass,
                           profile.storage());
  };
  const double whole = sum(roofline, calls(tokens, 1));
  RC_ASSERT(sum(roofline, calls(tokens + more, 1)) >= whole * (1 - 1e-12));
  RC_ASSERT(whole >= backbone_flops(calls(tokens, 1)) / roofline.device().peak_flops(roofline.type()));
  // Of the products: what moves numbers may gain more than its share when a shard fits in the cache.
  const auto products = [&](std::int64_t tp) {
    double seconds = 0;
    for (const OperatorCall& call : calls(tokens, tp)) {
      if (call.op != Operator::linear) continue;
      for (const GpuKernel& kernel : gpu_kernels(call, roofline.type())) {
        if (kernel.kind == GpuKernel::Kind::product)
          seconds += call.count * kernel.count * roofline.seconds(kernel, call.pass == Pass::forward);
      }
    }
    return seconds;
  };
  for (const std::int64_t tp : {2, 4, 16})
    RC_ASSERT(static_cast<double>(tp) * products(tp) >= products(1) * (1 - 1e-12));
}

/// Up to five tasks of other ranks and modules, each with up to four sequences of lengths of their own.
MicrobatchLoad any_load() {
  MicrobatchLoad load;
  load.kernels = *rc::gen::element(AdapterKernels::separate, AdapterKernels::split, AdapterKernels::side_by_side,
                                   AdapterKernels::fused);
  for (auto tasks = *rc::gen::inRange(1, 6); tasks > 0; --tasks) {
    AdapterShape shape = adapter(*rc::gen::inRange<std::int64_t>(1, 130), {Module::q, Module::down});
    shape.targets[static_cast<std::size_t>(Module::up)] = *rc::gen::arbitrary<bool>();
    shape.dropout = *rc::gen::element(0.0, 0.1);
    load.tasks.push_back({shape, 0});
    for (auto sequences = *rc::gen::inRange(1, 5); sequences > 0; --sequences) {
      const auto length = *rc::gen::inRange<std::int64_t>(1, 3000);
      load.sequences.push_back({0, length});
      load.tasks.back().tokens += length;
    }
    load.tokens += load.tasks.back().tokens;
  }
  load.scored = load.tokens;
  return load;
}

RC_GTEST_PROP(CostModel, APassNeverTakesLessWithALongerSequence, ()) {
  const CostModel cost(any_profile());
  const BackboneShape backbone = any_backbone();
  const Pass pass = *rc::gen::element(Pass::forward, Pass::backward);
  const MicrobatchLoad load = any_load();
  MicrobatchLoad longer = load;
  const std::int64_t more = *rc::gen::element<std::int64_t>(1, 7, 100, 1000);
  longer.sequences.back().context += more;
  longer.tasks.back().tokens += more;
  longer.tokens += more;
  const auto seconds = [&](const MicrobatchLoad& of) {
    return cost.estimate(stage_operators(backbone, {backbone.layers, true, true}, of, pass, cost.storage())).seconds;
  };
  RC_ASSERT(seconds(longer) >= seconds(load) * (1 - 1e-12));
}

OperatorCall attention_of(Pass pass, std::int64_t sequences, std::int64_t context) {
  OperatorCall call{Operator::attention, pass, {32, 32, 128}, sequences * context};
  call.sequences = sequences;
  call.context = context;
  return call;
}

/// Counted in PyTorch 2.15 with Hugging Face's eager attention: kernels and bytes a score, each tensor read or written
/// once.
TEST(Roofline, EagerAttentionMovesEveryScoreInEveryKernel) {
  struct Counted {
    DataType type;
    Pass pass;
    double kernels, bytes;
  };
  for (const auto& [type, pass, kernels, bytes] :
       {Counted{DataType::bf16, Pass::forward, 7, 32}, Counted{DataType::bf16, Pass::backward, 9, 48},
        Counted{DataType::f16, Pass::forward, 6, 24}, Counted{DataType::f16, Pass::backward, 8, 40},
        Counted{DataType::f32, Pass::forward, 5, 32}, Counted{DataType::f32, Pass::backward, 7, 48}}) {
    Profile profile = analytic_profile("a100-80", type);
    const Roofline flash(profile);
    profile.attention = AttentionKind::eager;
    const Roofline eager(profile);
    const OperatorCall call = attention_of(pass, 4, 2048);
    const double scores = 4.0 * 32 * 2048 * 2048, heads = 4.0 * 32 * 2048 * 128;
    const double products = pass == Pass::forward ? 2 : 4;
    EXPECT_EQ(eager.traffic(call), scores * bytes + heads * products * 2 * static_cast<double>(bytes_of(type)));
    EXPECT_EQ(eager.cost(call).launches, kernels);
    EXPECT_EQ(flash.cost(call).launches, 1);
    // All of it goes through the memory, which nothing but its bandwidth speeds up.
    EXPECT_GE(eager.seconds(call), eager.traffic(call) / eager.device().memory_bandwidth);
    if (type == DataType::f32) continue;
    EXPECT_GT(eager.seconds(call), 5 * flash.seconds(call));
  }
}

/// In 16 bits and of whole sequences: FlashAttention makes scores again going back, at half of the peak, which may take
/// longer than slow f32 products whose causal half is not spared.
RC_GTEST_PROP(Roofline, EagerAttentionTakesLongerThanFlashAttention, ()) {
  Profile profile = any_profile();
  RC_PRE(profile.dtype != DataType::f32);
  profile.attention = AttentionKind::flash;
  const Roofline flash(profile);
  profile.attention = AttentionKind::eager;
  const Roofline eager(profile);
  const OperatorCall call =
      attention_of(*rc::gen::element(Pass::forward, Pass::backward), *rc::gen::inRange<std::int64_t>(1, 20),
                   *rc::gen::inRange<std::int64_t>(1, 5000));
  RC_ASSERT(eager.traffic(call) > flash.traffic(call));
  RC_ASSERT(eager.seconds(call) > flash.seconds(call));
}

TEST(CostModel, SequencesOfUnlikeLengthsAttendAsLongAsTheirWorkSays) {
  // 8 sequences of 4,096 tokens, and others up to 7 tokens longer: one call, and eight in one launch.
  const BackboneShape backbone = builtin_backbone("llama2-7b");
  const auto attention = [&](const CostModel& cost, Pass pass, std::int64_t unlike) {
    MicrobatchLoad load = load_of(adapter(16, {Module::q}), {1});
    load.sequences.clear();
    for (std::int64_t i = 0; i < 8; ++i) load.sequences.push_back({0, 4096 + i * unlike});
    std::vector<OperatorCall> calls = stage_operators(backbone, {2, false, false}, load, pass, cpu_storage());
    std::erase_if(calls, [](const OperatorCall& call) { return call.op != Operator::attention; });
    EXPECT_EQ(calls.size(), unlike > 0 ? 8U : 1U);
    return cost.estimate(calls).seconds;
  };
  for (const char* gpu : {"a40", "a100", "h100"}) {
    const CostModel cost(analytic_profile(gpu, DataType::bf16));
    for (const Pass pass : {Pass::forward, Pass::backward}) {
      const double alike = attention(cost, pass, 0);
      EXPECT_GE(attention(cost, pass, 1), alike) << gpu;
      EXPECT_LE(attention(cost, pass, 1), 1.01 * alike) << gpu;
    }
  }
}

}  // namespace
}  // namespace braid::costmodel
