#include <benchmark/benchmark.h>

#include "base/random.h"
#include "costmodel/profile/cost_model.h"
#include "costmodel/profile/derive.h"
#include "costmodel/work/stage_latency.h"

namespace {

using namespace braid;
using namespace braid::costmodel;

AdapterShape adapter() {
  AdapterShape shape;
  shape.rank = 16;
  shape.alpha = 32;
  for (const Module module : {Module::q, Module::k, Module::v, Module::o})
    shape.targets[static_cast<std::size_t>(module)] = true;
  return shape;
}

/// Tasks of two sequences each; lengths differ with `i`.
MicrobatchLoad load_of(std::int64_t i, std::int64_t tasks) {
  MicrobatchLoad load;
  for (std::int64_t task = 0; task < tasks; ++task) {
    const std::int64_t length = 64 + (i * 37 + task * 61) % 192;
    load.tokens += 2 * length;
    load.sequences.insert(load.sequences.end(), 2, {0, length});
    load.tasks.push_back({adapter(), 2 * length});
  }
  load.scored = load.tokens;
  return load;
}

Profile derived() {
  Profile profile = analytic_profile("a40", DataType::bf16);
  profile.entries = derived_entries(profile, builtin_backbone("llama2-7b"), std::vector{adapter()}, 16384, 4096);
  for (ProfileEntry& entry : profile.entries) entry.source = "measured";
  return profile;
}

constexpr StageShape kStage{8, false, false};
constexpr std::int64_t kLoads = 64;

std::vector<MicrobatchLoad> loads(std::int64_t tasks) {
  std::vector<MicrobatchLoad> loads;
  for (std::int64_t i = 0; i < kLoads; ++i) loads.push_back(load_of(i, tasks));
  return loads;
}

void uncached(benchmark::State& state, const CostModel& cost) {
  const BackboneShape backbone = builtin_backbone("llama2-7b");
  const std::vector<MicrobatchLoad> asked = loads(state.range(0));
  std::size_t i = 0;
  for (auto _ : state) {
    const MicrobatchLoad& load = asked[i++ % asked.size()];
    benchmark::DoNotOptimize(
        cost.estimate(stage_operators(backbone, kStage, load, Pass::forward, cost.storage())).seconds);
  }
}

void BM_StageFromRoofline(benchmark::State& state) {
  uncached(state, CostModel(analytic_profile("a40", DataType::bf16)));
}
BENCHMARK(BM_StageFromRoofline)->ArgName("tasks")->Arg(1)->Arg(4);

void BM_StageFromProfile(benchmark::State& state) {
  uncached(state, CostModel(derived()));
}
BENCHMARK(BM_StageFromProfile)->ArgName("tasks")->Arg(1)->Arg(4);

void BM_StageCached(benchmark::State& state) {
  const CostModel cost(derived());
  const BackboneShape backbone = builtin_backbone("llama2-7b");
  const std::vector<MicrobatchLoad> asked = loads(state.range(0));
  StageLatency latency(cost, backbone);
  std::size_t i = 0;
  for (auto _ : state)
    benchmark::DoNotOptimize(latency.estimate(kStage, asked[i++ % asked.size()], Pass::forward).seconds);
}
BENCHMARK(BM_StageCached)->ArgName("tasks")->Arg(1)->Arg(4);

void BM_LoadProfile(benchmark::State& state) {
  const std::string text = to_json(derived());
  for (auto _ : state) benchmark::DoNotOptimize(profile_from(parse_json(text, "profile.json")).entries.size());
  state.counters["entries"] = static_cast<double>(derived().entries.size());
}
BENCHMARK(BM_LoadProfile)->Unit(benchmark::kMillisecond);

}  // namespace

BENCHMARK_MAIN();
