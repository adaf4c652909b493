#pragma once

#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include "base/node.h"
#include "exec/batch.h"
#include "exec/devices.h"
#include "exec/files/peft.h"
#include "exec/objectives/token_losses.h"
#include "exec/optimizer.h"
#include "exec/stage_model.h"
#include "support.h"
#include "workload/peft_config.h"

// What PyTorch, transformers and PEFT gave for small models; see scripts/golden.
namespace braid::exec::testing {

inline std::filesystem::path golden_folder(const std::string& name) {
  return golden(name);
}

/// The adapter's shape as its adapter_config.json says.
inline costmodel::AdapterShape read_adapter_shape(const std::filesystem::path& folder,
                                                  costmodel::Architecture architecture) {
  using costmodel::AdapterMethod;
  const Node config = read_json(folder / "adapter_config.json");
  const workload::ModuleNames names{1, architecture};
  costmodel::AdapterShape shape;
  if (config.find("config")) {
    shape.method = AdapterMethod::bottleneck;
    shape.rank = std::llround(config.number_at("hidden_size") / config.at("config").number_at("reduction_factor"));
    shape.targets[static_cast<std::size_t>(costmodel::Module::o)] = true;
    shape.targets[static_cast<std::size_t>(costmodel::Module::down)] = true;
    return shape;
  }
  const std::string type = config.string_at("peft_type");
  if (type == "PREFIX_TUNING") {
    shape.method = AdapterMethod::prefix_tuning;
    shape.rank = config.integer_at("num_virtual_tokens");
    return shape;
  }
  shape.targets = workload::targets_from(config.at("target_modules"), names);
  if (type == "IA3") {
    shape.method = AdapterMethod::ia3;
    shape.scales_inputs = workload::scales_down_input(config.at("feedforward_modules"), names);
    return shape;
  }
  shape.rank = config.integer_at("r");
  if (type == "SHIRA") shape.method = AdapterMethod::diff_pruning;
  if (type == "VERA") shape.method = AdapterMethod::vera;
  if (type != "LORA") return shape;
  if (config.bool_or("use_dora", false)) shape.method = AdapterMethod::dora;
  shape.alpha = config.number_at("lora_alpha");
  shape.dropout = config.number_at("lora_dropout");
  shape.rank_stabilized = config.bool_or("use_rslora", false);
  if (const Node* ranks = config.find("rank_pattern")) shape.module_ranks = workload::ranks_from(*ranks, shape, names);
  if (const Node* alphas = config.find("alpha_pattern"))
    shape.module_alphas = workload::alphas_from(*alphas, shape, names);
  return shape;
}

/// Samples as rows of [n, L] ids and labels.
inline workload::Dataset dataset_of(const std::vector<std::int64_t>& ids, const std::vector<std::int64_t>& labels,
                                    std::int64_t rows) {
  workload::Dataset dataset;
  const std::size_t length = ids.size() / static_cast<std::size_t>(rows);
  for (std::size_t row = 0; row < static_cast<std::size_t>(rows); ++row) {
    workload::Sample sample;
    for (std::size_t i = row * length; i < (row + 1) * length; ++i) {
      sample.tokens.push_back(static_cast<std::int32_t>(ids[i]));
      sample.labels.push_back(static_cast<std::int32_t>(labels[i]));
    }
    dataset.samples.push_back(std::move(sample));
  }
  return dataset;
}

/// One microbatch of all samples of task 0.
inline planner::Microbatch microbatch_of(const workload::Dataset& dataset) {
  planner::Microbatch microbatch;
  for (std::size_t i = 0; i < dataset.samples.size(); ++i) {
    planner::Segment segment;
    segment.sample = segment.index = static_cast<std::int32_t>(i);
    segment.end = static_cast<std::int32_t>(dataset.samples[i].tokens.size());
    microbatch.segments.push_back(segment);
  }
  return microbatch;
}

/// A golden case as a whole model on one stage, with its PEFT adapter loaded.
struct GoldenCase {
  explicit GoldenCase(const std::string& name, costmodel::Recompute recompute = {},
                      kernels::Device& device = cpu_device(), costmodel::DataType type = costmodel::DataType::f32)
      : folder(golden_folder(name)),
        backbone(costmodel::read_backbone(folder)),
        expected(SafetensorsFolder::open_file(folder / "expected.safetensors")),
        shape(read_adapter_shape(folder / "adapter", backbone.architecture)),
        pool(device),
        probe(device),
        model(Shard(backbone), layers(), recompute,
              load_stage_weights(SafetensorsFolder::open(folder), Shard(backbone), layers(), device.kernels(), type),
              pool, probe) {
    adapters.push_back(std::make_unique<Adapter>(backbone, shape, layers(), 0));
    load_peft_adapter(folder / "adapter", *adapters[0]);
    adapters[0]->move_to(device);
  }

  planner::LayerRange layers() const { return {0, static_cast<std::int32_t>(backbone.layers)}; }

  /// Forward and backward of the samples as one microbatch; gradients add to the adapter's. Returns the loss.
  double train(const workload::Dataset& dataset) {
    Batch batch = make_batch(microbatch_of(dataset), {&dataset, 1});
    TokenLosses losses({1.0 / static_cast<double>(batch.scored.size())});
    run_whole(model.forward(0, std::move(batch), {}, adapters, seeds, losses));
    run_whole(model.backward(0, {}, adapters, seeds));
    return losses.sums()[0];
  }

  std::filesystem::path folder;
  costmodel::BackboneShape backbone;
  SafetensorsFolder expected;
  costmodel::AdapterShape shape;
  BufferPool pool;
  Probe probe;
  StageModel model;
  std::vector<std::unique_ptr<Adapter>> adapters;
  std::vector<std::uint64_t> seeds = {0};
};

/// Largest difference over the largest expected number.
inline double relative_difference(std::span<const float> got, std::span<const float> expected) {
  double largest = 0, difference = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    largest = std::max(largest, std::abs(static_cast<double>(expected[i])));
    difference = std::max(difference, std::abs(static_cast<double>(got[i]) - static_cast<double>(expected[i])));
  }
  return difference / largest;
}

}  // namespace braid::exec::testing
