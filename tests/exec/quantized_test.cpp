#include <gtest/gtest.h>

#include "golden.h"
#include "kernels/compressed.h"
#include "support.h"
#include "tasks_laws.h"

/// Base weights of fewer bits.
namespace braid::exec {
namespace {

TEST(Quantized, Nf4AndInt8AreWhatBitsandbytesMakesOfAWeight) {
  const SafetensorsFolder golden =
      SafetensorsFolder::open_file(std::filesystem::path(BRAID_SOURCE_DIR) / "tests/golden/quantized.safetensors");
  const std::vector<float> weight = golden.read_f32("weight", {24, 192});
  for (const auto& [name, type] : {std::pair<const char*, kernels::WeightType>{"nf4", kernels::WeightType::nf4},
                                   {"int8", kernels::WeightType::int8}}) {
    const std::vector<float> expected = golden.read_f32(name, {24, 192});
    std::vector<float> wide(weight.size());
    kernels::CompressedWeight({weight.data(), 24, 192}, type).widen(0, 0, {wide.data(), 24, 192});
    for (std::size_t i = 0; i < wide.size(); ++i)
      EXPECT_NEAR(wide[i], expected[i], 1e-6 * std::abs(expected[i])) << name;
  }
}

/// A golden backbone in bf16 loses nothing by it: it is stored so.
TEST(Quantized, ABackboneStoredInBf16IsTheSameWhenHeldInIt) {
  GoldenCase plain("llama_5"), held("llama_5", {}, cpu_device(), costmodel::DataType::bf16);
  const std::vector<std::int64_t> shape = plain.expected.find("input_ids")->shape;
  const workload::Dataset data = testing::dataset_of(plain.expected.read_i64("input_ids", shape),
                                                     plain.expected.read_i64("labels", shape), shape[0]);
  EXPECT_NEAR(held.train(data), plain.train(data), 1e-6);
}

/// The same numbers on both devices, with every method of adapters: products by rounded weights.
TEST(Quantized, BothDevicesGiveTheSameLossesAndGradients) {
  for (const costmodel::DataType type : {costmodel::DataType::int8, costmodel::DataType::nf4}) {
    GoldenCase one("dora", {}, cpu_device(), type), other("dora", {}, reference_device(), type);
    const std::vector<std::int64_t> shape = one.expected.find("input_ids")->shape;
    const workload::Dataset data = testing::dataset_of(one.expected.read_i64("input_ids", shape),
                                                       one.expected.read_i64("labels", shape), shape[0]);
    const double loss = one.train(data);
    EXPECT_NEAR(loss, other.train(data), 1e-5 * loss);
    EXPECT_LT(testing::relative_difference(one.adapters[0]->gradients(), other.adapters[0]->gradients()), 2e-5);
    const double exact = GoldenCase("dora").train(data);
    EXPECT_NE(loss, exact);
    EXPECT_NEAR(loss, exact, 0.1 * exact);
  }
}

TEST(Quantized, ProductsTakeTheBytesThatTheMemoryModelSays) {
  const costmodel::BackboneShape backbone = costmodel::read_backbone(golden("llama"));
  const planner::LayerRange layers{0, static_cast<std::int32_t>(backbone.layers)};
  for (const costmodel::DataType type :
       {costmodel::DataType::f32, costmodel::DataType::bf16, costmodel::DataType::int8, costmodel::DataType::nf4}) {
    const StageWeights weights = load_stage_weights(SafetensorsFolder::open(golden("llama")), Shard(backbone), layers,
                                                    cpu_device().kernels(), type);
    Bytes held = 0;
    for (const LayerWeights& layer : weights.layers)
      for (const auto& product : layer.products) held += product->bytes();
    const costmodel::StageShape stage{backbone.layers, false, false};
    const Bytes said = costmodel::backbone_bytes(backbone, stage, costmodel::cpu_storage(type)) -
                       backbone.layers * backbone.vector_parameters() * 4;
    // oneDNN rounds widths up, where there is AVX-512, and a row's or a block's scale is small beside it.
    EXPECT_NEAR(static_cast<double>(held) / static_cast<double>(said), 1, 0.065) << name(type);
  }
}

}  // namespace
}  // namespace braid::exec
