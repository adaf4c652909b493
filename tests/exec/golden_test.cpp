#include "golden.h"

#include <cstdlib>

#include <gtest/gtest.h>

#include "support.h"

namespace braid::exec {
namespace {

using testing::GoldenCase;
using testing::relative_difference;

kernels::Device& device_named(std::string_view name) {
  return name == "cpu" ? cpu_device() : reference_device();
}

/// Backbones as transformers 4 and 5 save them, on every device.
class Golden : public ::testing::TestWithParam<std::tuple<const char*, const char*>> {};
/// Those of them with a training run.
class GoldenTraining : public ::testing::TestWithParam<const char*> {};

std::vector<std::int64_t> shape_of(const GoldenCase& golden, const std::string& name) {
  const TensorInfo* info = golden.expected.find(name);
  EXPECT_NE(info, nullptr) << name;
  return info->shape;
}

workload::Dataset evaluation_data(const GoldenCase& golden) {
  const std::vector<std::int64_t> shape = shape_of(golden, "input_ids");
  return testing::dataset_of(golden.expected.read_i64("input_ids", shape), golden.expected.read_i64("labels", shape),
                             shape[0]);
}

TEST_P(Golden, LogitsOfTheBareBackboneEqualTransformers) {
  GoldenCase golden(std::get<0>(GetParam()), {}, device_named(std::get<1>(GetParam())));
  // A fresh LoRA adapter leaves the backbone as it is.
  costmodel::AdapterShape fresh;
  fresh.rank = 1, fresh.alpha = 1;
  fresh.targets[static_cast<std::size_t>(costmodel::Module::o)] = true;
  golden.adapters[0] = std::make_unique<Adapter>(golden.backbone, fresh, golden.layers(), 0);
  const workload::Dataset data = evaluation_data(golden);
  const std::vector<float> logits =
      golden.model.logits(make_batch(testing::microbatch_of(data), {&data, 1}), golden.adapters, golden.seeds);
  EXPECT_LT(relative_difference(logits, golden.expected.read_f32("logits", shape_of(golden, "logits"))), 1e-5);
}

TEST_P(Golden, LogitsWithAnAdapterThatPeftWroteEqualPeft) {
  GoldenCase golden(std::get<0>(GetParam()), {}, device_named(std::get<1>(GetParam())));
  const workload::Dataset data = evaluation_data(golden);
  const std::vector<float> logits =
      golden.model.logits(make_batch(testing::microbatch_of(data), {&data, 1}), golden.adapters, golden.seeds);
  EXPECT_LT(relative_difference(logits, golden.expected.read_f32("adapter_logits", shape_of(golden, "adapter_logits"))),
            1e-5);
}

TEST_P(Golden, LossAndGradientsOfEveryTargetModuleEqualPeft) {
  GoldenCase golden(std::get<0>(GetParam()), {}, device_named(std::get<1>(GetParam())));
  const double loss = golden.train(evaluation_data(golden));
  EXPECT_NEAR(loss, golden.expected.read_f32("loss", {1})[0], 1e-5 * loss);
  int compared = 0;
  for (std::int32_t layer = 0; layer < golden.layers().last; ++layer) {
    for (const ParameterShape& parameter : golden.adapters[0]->table()) {
      if (parameter.role == Role::prefix) continue;
      const std::span<float> got =
          golden.adapters[0]->row(Adapter::Part::gradient, layer, parameter.role, parameter.module).span();
      const std::string key = tensor_name(*golden.adapters[0], layer, parameter);
      const std::vector<float> expected = golden.expected.read_f32("grad." + key, shape_of(golden, "grad." + key));
      ASSERT_EQ(got.size(), expected.size()) << key;
      EXPECT_LT(relative_difference(got, expected), 3e-5) << key;
      ++compared;
    }
  }
  if (golden.shape.virtual_tokens() > 0) {
    const std::vector<float> expected =
        golden.expected.read_f32("grad.prompt_embeddings", shape_of(golden, "grad.prompt_embeddings"));
    const std::int64_t layers = golden.backbone.layers, width = 2 * golden.backbone.kv_width();
    for (std::int32_t layer = 0; layer < layers; ++layer) {
      const kernels::Matrix got =
          golden.adapters[0]->matrix(Adapter::Part::gradient, layer, Role::prefix, costmodel::Module::q);
      std::vector<float> of_layer;
      for (std::int64_t token = 0; token < got.rows; ++token)
        of_layer.insert(of_layer.end(), expected.begin() + (token * layers + layer) * width,
                        expected.begin() + (token * layers + layer + 1) * width);
      EXPECT_LT(relative_difference({got.data, of_layer.size()}, of_layer), 3e-5) << layer;
      compared += 4;
    }
  }
  EXPECT_GE(compared, 8);
}

workload::Optimizer optimizer_of(const Node& training) {
  workload::Optimizer optimizer;
  optimizer.lr = training.number_at("learning_rate");
  optimizer.beta1 = training.number_at("beta1");
  optimizer.beta2 = training.number_at("beta2");
  optimizer.epsilon = training.number_at("epsilon");
  optimizer.weight_decay = training.number_at("weight_decay");
  optimizer.max_grad_norm = training.number_at("max_grad_norm");
  optimizer.warmup_steps = training.integer_at("warmup_steps");
  const std::string schedule = training.string_at("schedule");
  optimizer.schedule = schedule == "cosine"   ? workload::Schedule::cosine
                       : schedule == "linear" ? workload::Schedule::linear
                                              : workload::Schedule::constant;
  return optimizer;
}

TEST_P(GoldenTraining, TwentyAdamWStepsGiveTheSameLossesNormsAndAdapter) {
  GoldenCase golden(GetParam());
  const Node settings = read_json(golden.folder / "expected.json");
  const workload::Optimizer optimizer = optimizer_of(settings.at("training"));
  const std::int64_t steps = settings.at("training").integer_at("steps");
  const std::vector<std::int64_t> shape = shape_of(golden, "train.input_ids");
  const std::vector<std::int64_t> ids = golden.expected.read_i64("train.input_ids", shape),
                                  labels = golden.expected.read_i64("train.labels", shape);
  const std::vector<float> losses = golden.expected.read_f32("train.losses", {steps}),
                           norms = golden.expected.read_f32("train.grad_norms", {steps}),
                           rates = golden.expected.read_f32("train.lrs", {steps});
  const std::int64_t numbers = shape[1] * shape[2];
  for (std::int64_t step = 0; step < steps; ++step) {
    const auto slice = [&](const std::vector<std::int64_t>& all) {
      return std::vector<std::int64_t>(all.begin() + step * numbers, all.begin() + (step + 1) * numbers);
    };
    const double loss = golden.train(testing::dataset_of(slice(ids), slice(labels), shape[1]));
    const auto place = static_cast<std::size_t>(step);
    EXPECT_NEAR(loss, losses[place], 1e-4 * losses[place]) << "step " << step;
    double squared = 0;
    std::vector<double> norms_of_layers;
    squared_norms(*golden.adapters[0], golden.pool, norms_of_layers);
    for (const double norm : norms_of_layers) squared += norm;
    const double norm = std::sqrt(squared);
    EXPECT_NEAR(norm, norms[place], 1e-4 * norms[place]) << "step " << step;
    EXPECT_NEAR(learning_rate(optimizer, step, steps), rates[place], 1e-9 + 1e-6 * rates[place]) << "step " << step;
    take_step(optimizer, step, steps, clip_scale(norm, optimizer.max_grad_norm), *golden.adapters[0],
              cpu_device().kernels());
  }
  for (const AdapterTensor& tensor : adapter_tensors(*golden.adapters[0])) {
    EXPECT_LT(relative_difference(tensor.data, golden.expected.read_f32("train.final." + tensor.name, tensor.shape)),
              1e-4)
        << tensor.name;
  }
}

/// Leaves an adapter trained here, with its logits, for scripts/golden/check_adapters.sh to load with PEFT or
/// AdapterHub's library.
TEST_P(Golden, WritesAnAdapterForOthersToRead) {
  const char* kept = std::getenv("BRAID_KEEP_ADAPTERS");
  if (!kept) GTEST_SKIP() << "BRAID_KEEP_ADAPTERS names no folder";
  const auto& [name, device] = GetParam();
  if (std::string_view(device) != "cpu") GTEST_SKIP() << "one device's are enough";
  GoldenCase golden(name);
  const workload::Dataset data = evaluation_data(golden);
  workload::Optimizer optimizer;
  optimizer.lr = 5e-3;
  for (std::int64_t step = 0; step < 3; ++step) {
    golden.train(data);
    take_step(optimizer, step, 3, 1.0, *golden.adapters[0], cpu_device().kernels());
  }
  const std::filesystem::path folder = std::filesystem::path(kept) / name;
  write_peft_adapter(folder, golden.shape, golden.backbone, golden.folder.string(),
                     adapter_tensors(*golden.adapters[0]));
  const std::vector<float> logits =
      golden.model.logits(make_batch(testing::microbatch_of(data), {&data, 1}), golden.adapters, golden.seeds);
  std::vector<float> ids;
  for (const workload::Sample& sample : data.samples) ids.insert(ids.end(), sample.tokens.begin(), sample.tokens.end());
  const std::vector<std::int64_t> ids_shape = shape_of(golden, "input_ids"), logits_shape = shape_of(golden, "logits");
  const std::vector<NamedTensor> tensors = {{"input_ids", ids_shape, ids}, {"logits", logits_shape, logits}};
  write_safetensors(folder / "logits.safetensors", tensors);
}

TEST_P(Golden, AnAdapterWrittenAndReadAgainIsTheSame) {
  GoldenCase golden(std::get<0>(GetParam()));
  const TestFolder folder;
  write_peft_adapter(folder.path(), golden.shape, golden.backbone, "backbone", adapter_tensors(*golden.adapters[0]));
  Adapter again(golden.backbone, testing::read_adapter_shape(folder.path(), golden.backbone.architecture),
                golden.layers(), 99);
  load_peft_adapter(folder.path(), again);
  EXPECT_TRUE(
      std::equal(again.parameters().begin(), again.parameters().end(), golden.adapters[0]->parameters().begin()));
  EXPECT_EQ(testing::read_adapter_shape(folder.path(), golden.backbone.architecture), golden.shape);
}

INSTANTIATE_TEST_SUITE_P(
    Models, Golden,
    ::testing::Combine(::testing::Values("llama", "llama3_rope", "qwen25", "llama_5", "linear_rope", "yarn_rope",
                                         "yarn_scaled", "mistral", "qwen3", "tied_differs", "patterns", "opt", "gpt2",
                                         "dora", "dora_gpt2", "vera", "ia3", "prefix", "prefix_gpt2", "shira",
                                         "bottleneck"),
                       ::testing::Values("cpu", "reference")),
    [](const auto& tested) { return std::string(std::get<0>(tested.param)) + "_on_" + std::get<1>(tested.param); });
INSTANTIATE_TEST_SUITE_P(Models, GoldenTraining, ::testing::Values("llama", "llama3_rope", "qwen25"),
                         [](const auto& tested) { return std::string(tested.param); });

}  // namespace
}  // namespace braid::exec
