// How long planning MuxTune takes on one core, the whole grid of deployments searched, by tasks and GPUs; and on one
// pipeline by its stages.
#include <benchmark/benchmark.h>

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

void plan_on_cluster(benchmark::State& state) {
  const Study study = make_study(mixed_tasks(state.range(0)), state.range(1), 8, 32);
  const planner::PolicyChoice choice = planner::parse_policy("muxtune");
  double step = 0;
  for (auto _ : state) step = planner::make_plan(study.input(), choice).predicted.step_seconds;
  state.counters["predicted_step_seconds"] = step;
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

void plan_on_pipeline(benchmark::State& state) {
  const Study study = make_study(mixed_tasks(state.range(0)), state.range(1), 1, 32);
  const planner::PolicyChoice choice = planner::parse_policy("muxtune");
  const planner::Overrides stages{.tp = 1, .pp = state.range(1), .microbatches = {}};
  for (auto _ : state) benchmark::DoNotOptimize(planner::make_plan(study.input(stages), choice).predicted.step_seconds);
}
BENCHMARK(plan_on_pipeline)
    ->ArgNames({"tasks", "stages"})
    ->ArgsProduct({{8, 16, 32, 64, 128, 256}, {1, 4, 16}})
    ->Unit(benchmark::kMillisecond)
    ->Iterations(1);

}  // namespace
}  // namespace braid

BENCHMARK_MAIN();
