// Training of one LoRA task as a share of the GEMM peak measured in the same run, on as many threads as OMP_NUM_THREADS
// says, on the small example backbone: 4 layers, hidden 1024, FFN 2816, 16 query and 4 key/value heads, vocabulary
// 4096; samples of 128 tokens packed to microbatches of 512; rank 16 on q, k, v, o; a step of AdamW after every 4
// microbatches. Of reproducible runs the adapter's gradients add up exactly.
#include <algorithm>

#include <benchmark/benchmark.h>

#include "base/random.h"
#include "base/steady_clock.h"
#include "exec/example/example.h"
#include "exec/example/random_weights.h"
#include "exec/objectives/token_losses.h"
#include "exec/optimizer.h"
#include "exec/profiling/measure.h"
#include "exec/stage_model.h"
#include "planner/program/load.h"
#include "tests/exec/devices.h"

namespace braid::exec {
namespace {

constexpr std::int64_t kSamples = 4, kSampleTokens = 128, kMicrobatches = 4;

costmodel::AdapterShape adapter_shape(double dropout) {
  costmodel::AdapterShape shape;
  shape.rank = 16;
  shape.alpha = 32;
  shape.dropout = dropout;
  for (const costmodel::Module module :
       {costmodel::Module::q, costmodel::Module::k, costmodel::Module::v, costmodel::Module::o})
    shape.targets[static_cast<std::size_t>(module)] = true;
  return shape;
}

struct Task {
  explicit Task(std::int64_t vocabulary) {
    RandomStream random(3);
    for (std::int32_t i = 0; i < kSamples; ++i) {
      workload::Sample sample;
      for (std::int64_t t = 0; t < kSampleTokens; ++t)
        sample.append(static_cast<std::int32_t>(random.next_below(static_cast<std::uint64_t>(vocabulary))), true);
      dataset.samples.push_back(std::move(sample));
      planner::Segment segment;
      segment.index = i;
      segment.sample = i;
      segment.end = kSampleTokens;
      segment.scored = kSampleTokens - 1;
      microbatch.segments.push_back(segment);
    }
  }
  workload::Dataset dataset;
  planner::Microbatch microbatch;
};

void train_one_task(benchmark::State& state, ExampleSize size) {
  const double dropout = static_cast<double>(state.range(0)) / 100;
  const costmodel::BackboneShape backbone = example_backbone(size);
  const std::vector<costmodel::AdapterShape> shapes = {adapter_shape(dropout)};
  const planner::LayerRange layers{0, static_cast<std::int32_t>(backbone.layers)};
  const Task task(backbone.vocabulary);
  BufferPool pool(cpu_device());
  Probe probe(cpu_device());
  StageModel model(Shard(backbone), layers, {}, random_weights(backbone, cpu_device().kernels()), pool, probe);
  std::vector<std::unique_ptr<Adapter>> adapters;
  adapters.push_back(std::make_unique<Adapter>(backbone, shapes[0], layers, 1));
  if (state.range(1) != 0) adapters[0]->hold_exact_sums();
  const std::vector<std::uint64_t> seeds = {1};
  TokenLosses losses({1.0 / static_cast<double>(kMicrobatches * kSamples * (kSampleTokens - 1))});
  const workload::Optimizer optimizer;
  std::int64_t step = 0;
  std::vector<double> norms;
  const auto train_step = [&] {
    for (std::int64_t m = 0; m < kMicrobatches; ++m) {
      run_whole(model.forward(m, make_batch(task.microbatch, {&task.dataset, 1}), {}, adapters, seeds, losses));
      run_whole(model.backward(m, {}, adapters, seeds));
    }
    adapters[0]->settle_sums();
    squared_norms(*adapters[0], pool, norms);
    benchmark::DoNotOptimize(norms.data());
    take_step(optimizer, step++, 1000, 1.0, *adapters[0], cpu_device().kernels());
  };
  train_step();
  const costmodel::MicrobatchLoad load = planner::load_of(task.microbatch, shapes);
  double flops = 0;
  for (const costmodel::Pass pass : {costmodel::Pass::forward, costmodel::Pass::backward}) {
    flops += static_cast<double>(kMicrobatches) *
             costmodel::backbone_flops(costmodel::stage_operators(backbone, {backbone.layers, true, true}, load, pass,
                                                                  costmodel::cpu_storage()));
  }
  // The machine may be shared: the peak is taken before and after, and the medians of steps and of peaks compared.
  std::vector<double> peaks = {measure_peak_flops(cpu_device())};
  std::vector<double> rates;
  for (auto _ : state) {
    const auto start = SteadyClock::now();
    train_step();
    rates.push_back(flops / seconds_since(start));
    state.PauseTiming();
    peaks.push_back(measure_peak_flops(cpu_device()));
    state.ResumeTiming();
  }
  const auto median = [](std::vector<double>& numbers) {
    std::nth_element(numbers.begin(), numbers.begin() + static_cast<std::ptrdiff_t>(numbers.size() / 2), numbers.end());
    return numbers[numbers.size() / 2];
  };
  const double rate = median(rates), peak = median(peaks);
  state.counters["tokens_per_second"] = static_cast<double>(kMicrobatches * kSamples * kSampleTokens) * rate / flops;
  state.counters["gflops"] = rate / 1e9;
  state.counters["peak_gflops"] = peak / 1e9;
  state.counters["share_of_peak"] = rate / peak;
}
void iterations(benchmark::internal::Benchmark* benchmark) {
  benchmark->ArgNames({"dropout_percent", "reproducible"})->Unit(benchmark::kMillisecond)->Iterations(6);
}
BENCHMARK_CAPTURE(train_one_task, small, ExampleSize::small)
    ->Apply(iterations)
    ->Args({0, 0})
    ->Args({5, 0})
    ->Args({0, 1});
// So that a test can run it.
BENCHMARK_CAPTURE(train_one_task, tiny, ExampleSize::tiny)->Apply(iterations)->Args({5, 0})->Args({0, 1});

}  // namespace
}  // namespace braid::exec

BENCHMARK_MAIN();
