// How long planning MuxTune takes on one core, the whole grid of deployments searched, by tasks and GPUs; and on one
// pipeline by its stages.
#include <benchmark/benchmark.h>

#include "base/random.h"
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

void plan_on_cluster(benchmark::State& state) {
  plan(state, make_study(mixed_tasks(state.range(0)), state.range(1), 8, 32), "muxtune");
}
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
