// How long planning MuxTune takes on one core, the whole grid of deployments searched, by tasks and GPUs; and on one
// pipeline by its stages. And what a run decides anew at each step: which rows of LobRA's go to which replica, and
// which of LoRAFusion's to which bin.
#include <algorithm>
#include <cmath>

#include <benchmark/benchmark.h>

#include "base/random.h"
#include "planner/bins/bin_packing.h"
#include "planner/dispatch/dispatch.h"
#include "planner/policies/registry.h"
#include "planner/studies.h"

namespace braid {
namespace {

using namespace planner::testing;

/// Lengths of SST2, OpenBookQA and RTE in turn, as MuxTune pads them.
std::vector<StudyTask> mixed_tasks(std::int64_t count) {
  std::vector<StudyTask> tasks;
  for (std::int64_t t = 0; t < count; ++t) tasks.push_back({64 << t % 3, 32, 100, 16, false});
  return tasks;
}

/// Hardly two alike, as tenants' own tasks are.
std::vector<StudyTask> unlike_tasks(std::int64_t count) {
  RandomStream random(1);
  const auto below = [&](std::uint64_t most) { return static_cast<std::int64_t>(random.next_below(most)); };
  std::vector<StudyTask> tasks;
  for (std::int64_t t = 0; t < count; ++t)
    tasks.push_back({48 * (1 + below(11)), 4 + below(37), 100, 8 << below(3), true});
  return tasks;
}

void plan(benchmark::State& state, const Study& study, const char* policy) {
  const planner::PolicyChoice choice = planner::parse_policy(policy);
  double step = 0;
  for (auto _ : state) step = planner::make_plan(study.input(), choice).predicted.step_seconds;
  state.counters["predicted_step_seconds"] = step;
}

/// 512 sequences in 16 ranges of up to 8K tokens, many short and few long, over 64 GPUs: for each 16 of them four
/// replicas of two that hold 4K tokens and one of eight that holds all.
void dispatch_step(benchmark::State& state) {
  constexpr std::size_t kRanges = 16;
  const auto replica = [](std::size_t held, double speed, std::int64_t stages) {
    planner::ReplicaSpeed made;
    made.stages = stages;
    for (std::size_t interval = 0; interval < held; ++interval)
      made.full.push_back(
          {static_cast<std::int64_t>(2 * held / (interval + 1)), speed * (1.0 + 0.02 * static_cast<double>(interval))});
    return made;
  };
  std::vector<planner::ReplicaSpeed> replicas;
  for (std::int64_t gpus = 0; gpus < state.range(0); gpus += 16) {
    for (int small = 0; small < 4; ++small) replicas.push_back(replica(kRanges / 2, 0.11, 2));
    replicas.push_back(replica(kRanges, 0.09, 4));
  }
  RandomStream random(1);
  std::vector<planner::RangeLoad> ranges;
  for (std::size_t range = 0; range < kRanges; ++range)
    ranges.push_back({range, static_cast<std::int64_t>(1 + random.next_below(130 / (range + 1)))});
  planner::Dispatched dispatched;
  for (auto _ : state) dispatched = planner::dispatch_balanced(replicas, ranges);
  state.counters["over_bound"] = dispatched.seconds / dispatched.bound;
}

/// Batches of 64 samples of four adapters, lognormal lengths of summaries, in bins of 8K tokens.
void pack_samples(benchmark::State& state) {
  constexpr int kBatches = 50, kSamples = 64;
  RandomStream random(1);
  std::vector<std::vector<planner::BinItem>> batches(kBatches);
  for (std::vector<planner::BinItem>& batch : batches) {
    for (int i = 0; i < kSamples; ++i) {
      const double tokens = 900 * std::exp(0.6 * random.next_normal());
      batch.push_back({i % 4, std::clamp<std::int64_t>(static_cast<std::int64_t>(tokens), 32, 8192)});
    }
  }
  std::int64_t proven = 0;
  for (auto _ : state) {
    proven = 0;
    for (const std::vector<planner::BinItem>& batch : batches)
      proven += planner::pack_bins(batch, {8192, 64}, planner::BinSearch::searched).fewest ? 1 : 0;
  }
  state.SetItemsProcessed(state.iterations() * kBatches * kSamples);
  state.counters["proven_fewest"] = static_cast<double>(proven) / kBatches;
}

void plan_on_cluster(benchmark::State& state) {
  plan(state, make_study(mixed_tasks(state.range(0)), state.range(1), 8, 32), "muxtune");
}
BENCHMARK(dispatch_step)->ArgName("gpus")->Arg(16)->Arg(64)->Unit(benchmark::kMillisecond);
BENCHMARK(pack_samples)->Unit(benchmark::kMillisecond);
BENCHMARK(plan_on_cluster)
    ->ArgNames({"tasks", "nodes"})
    ->Args({8, 1})
    ->Args({32, 1})
    ->Args({32, 8})
    ->Args({128, 8})
    ->Args({256, 8})
    ->Unit(benchmark::kMillisecond)
    ->Iterations(1);

void plan_unlike_tasks(benchmark::State& state) {
  plan(state, make_study(unlike_tasks(state.range(0)), state.range(1), 8, 32), "muxtune");
}
BENCHMARK(plan_unlike_tasks)
    ->ArgNames({"tasks", "nodes"})
    ->Args({32, 8})
    ->Args({256, 8})
    ->Unit(benchmark::kMillisecond)
    ->Iterations(1);

void plan_others(benchmark::State& state, const char* policy) {
  plan(state, make_study(mixed_tasks(32), 8, 8, 32), policy);
}
BENCHMARK_CAPTURE(plan_others, nemo, "nemo")->Unit(benchmark::kMillisecond)->Iterations(1);
BENCHMARK_CAPTURE(plan_others, mlora, "mlora")->Unit(benchmark::kMillisecond)->Iterations(1);

void plan_on_pipeline(benchmark::State& state) {
  const Study study = make_study(mixed_tasks(state.range(0)), state.range(1), 1, 32);
  const planner::PolicyChoice choice = planner::parse_policy("muxtune");
  const planner::Overrides stages{.tp = 1, .pp = state.range(1), .microbatches = {}};
  for (auto _ : state) benchmark::DoNotOptimize(planner::make_plan(study.input(stages), choice).predicted.step_seconds);
}
BENCHMARK(plan_on_pipeline)
    ->ArgNames({"tasks", "stages"})
    ->ArgsProduct({{8, 16, 32, 64, 128, 256}, {1, 2, 4, 8, 16}})
    ->Unit(benchmark::kMillisecond)
    ->Iterations(1);

}  // namespace
}  // namespace braid

BENCHMARK_MAIN();
