// How many instructions a second the replay handles: 1F1B streams of several tasks, messages and Steps included.
#include <benchmark/benchmark.h>

#include "planner/streams.h"
#include "sim/replay.h"

namespace braid {
namespace {

using namespace planner::testing;

void replay_stream(benchmark::State& state) {
  const auto stages = static_cast<int>(state.range(0));
  const StreamShape shape{stages, 4, 16, static_cast<int>(state.range(1)), true};
  const planner::Program program =
      planner::lower(schedule_of(shape, planner::testing::Template::one_forward_one_backward));
  const planner::Durations durations = durations_of(program, even_costs(stages, 1000, 1300, 70));
  for (auto _ : state) benchmark::DoNotOptimize(sim::replay(program, durations).events.data());
  state.counters["instructions"] = static_cast<double>(program.instruction_count());
  state.counters["instructions_per_second"] = benchmark::Counter(static_cast<double>(program.instruction_count()),
                                                                 benchmark::Counter::kIsIterationInvariantRate);
}
BENCHMARK(replay_stream)
    ->Args({2, 8})
    ->Args({4, 16})
    ->Args({8, 8})
    ->Args({8, 128})
    ->Args({32, 64})
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace braid

BENCHMARK_MAIN();
