// What the executor takes of the host beside a device's work: the microseconds that one layer's pass forward and
// backward takes on a device that does nothing, of 1, 4 and 16 tasks with LoRA on all linear layers, the calls of
// operators in it, and what the pool of buffers holds of a GPU's memory over what was on loan at most. A GPU waits for
// its host where it computes a layer faster than this, with what the run time of GPUs takes for each launch.
#include <benchmark/benchmark.h>

#include "base/steady_clock.h"
#include "benchmarks/idle_device.h"
#include "exec/example/random_weights.h"
#include "exec/objectives/token_losses.h"
#include "exec/stage_model.h"

namespace braid::exec {
namespace {

constexpr std::int64_t kLayers = 16, kSamplesOfTask = 4, kSampleTokens = 128;

costmodel::BackboneShape backbone() {
  costmodel::BackboneShape shape;
  shape.hidden = 256, shape.intermediate = 896, shape.heads = 8, shape.kv_heads = 2, shape.head_dim = 32;
  shape.layers = kLayers, shape.vocabulary = 64;
  return shape;
}

void pass_layers(benchmark::State& state) {
  const auto tasks = static_cast<std::size_t>(state.range(0));
  costmodel::AdapterShape lora;
  lora.rank = 16, lora.alpha = 32, lora.dropout = static_cast<double>(state.range(1)) / 100;
  lora.targets = costmodel::kSeparateModules;
  kernels::IdleDevice device;
  BufferPool pool(device);
  Probe probe(device);
  const costmodel::BackboneShape shape = backbone();
  const planner::LayerRange layers{0, static_cast<std::int32_t>(kLayers)};
  StageModel model(Shard(shape), layers, {}, random_weights(shape, device.kernels()), pool, probe);
  std::vector<std::unique_ptr<Adapter>> adapters;
  std::vector<workload::Dataset> datasets(tasks);
  planner::Microbatch microbatch;
  for (std::size_t task = 0; task < tasks; ++task) {
    adapters.push_back(std::make_unique<Adapter>(shape, lora, layers, 1));
    for (std::int32_t i = 0; i < kSamplesOfTask; ++i) {
      workload::Sample sample;
      for (std::int64_t t = 0; t < kSampleTokens; ++t) sample.append(static_cast<std::int32_t>(t), true);
      datasets[task].samples.push_back(std::move(sample));
      planner::Segment segment;
      segment.task = static_cast<planner::TaskIndex>(task);
      segment.index = segment.sample = i;
      segment.end = kSampleTokens;
      segment.scored = kSampleTokens - 1;
      microbatch.segments.push_back(segment);
    }
  }
  const std::vector<std::uint64_t> seeds(tasks, 1);
  TokenLosses losses(std::vector<double>(tasks, 1));
  planner::MicrobatchId id = 0;
  const auto pass = [&] {
    run_whole(model.forward(id, make_batch(microbatch, datasets), {}, adapters, seeds, losses));
    run_whole(model.backward(id, {}, adapters, seeds));
    ++id;
  };
  pass();
  const std::int64_t before = kernels::IdleDevice::calls(), first = id;
  const SteadyClock::time_point begun = SteadyClock::now();
  for (auto _ : state) pass();
  const auto passes = static_cast<double>(kLayers * (id - first));
  state.counters["us_per_layer"] = seconds_since(begun) * 1e6 / passes;
  state.counters["held_over_peak"] = static_cast<double>(pool.held()) / static_cast<double>(pool.peak());
  state.counters["calls_per_layer"] = static_cast<double>(kernels::IdleDevice::calls() - before) / passes;
}
BENCHMARK(pass_layers)
    ->ArgNames({"tasks", "dropout_percent"})
    ->ArgsProduct({{1, 4, 16}, {0, 5}})
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace braid::exec

BENCHMARK_MAIN();
