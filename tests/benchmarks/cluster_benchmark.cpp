// How long a trace of jobs takes to replay as recorded, on one core: by jobs, GPUs and scheduler. Each job keeps its
// recorded time and GPUs, from one flat pool. And as fine-tuning tasks that share instances, planning included: on one
// instance model, as every run of a study has it.
#include <benchmark/benchmark.h>

#include "sim/cluster/study.h"
#include "traces/generate.h"
#include "traces/transform.h"

namespace braid {
namespace {

/// Sizes of Philly's jobs, at a load of 0.9.
std::vector<sim::ClusterJob> philly_like(std::int64_t count, std::int64_t gpus) {
  traces::Generator wanted;
  wanted.jobs = count;
  wanted.gpus = {{1, 93.2}, {2, 2.2}, {4, 2.3}, {8, 2.0}, {16, 0.2}, {32, 0.1}};
  std::vector<sim::ClusterJob> jobs;
  for (const traces::Job& job : traces::scale_to_load(traces::generate(wanted), 0.9, gpus).jobs)
    jobs.push_back({job.submit_seconds, job.duration_seconds, job.gpus});
  return jobs;
}

void replay_trace(benchmark::State& state, const char* scheduler) {
  const std::vector<sim::ClusterJob> jobs = philly_like(state.range(0), state.range(1));
  std::int64_t finished = 0;
  for (auto _ : state) {
    const auto chosen = sim::make_scheduler(scheduler, jobs);
    sim::TaskSets sets = sim::exclusive_sets();
    const sim::ClusterRun run =
        sim::simulate_cluster(jobs, {state.range(1) / 4, 4, true, sim::Placement::packed}, *chosen, sets);
    for (const sim::JobOutcome& outcome : run.outcomes) finished += outcome.finished();
  }
  state.counters["jobs_per_second"] = benchmark::Counter(static_cast<double>(finished), benchmark::Counter::kIsRate);
}

void sizes(benchmark::internal::Benchmark* benchmark) {
  benchmark->ArgNames({"jobs", "gpus"})->Unit(benchmark::kMillisecond)->Iterations(3);
  benchmark->Args({10'000, 1'000})->Args({82'247, 2'500})->Args({100'000, 10'000})->Args({1'000'000, 100'000});
}
BENCHMARK_CAPTURE(replay_trace, fcfs, "fcfs")->Apply(sizes);
BENCHMARK_CAPTURE(replay_trace, fcfs_any, "fcfs-any")->Apply(sizes);
BENCHMARK_CAPTURE(replay_trace, easy, "easy")->Apply(sizes);
BENCHMARK_CAPTURE(replay_trace, sjf, "sjf")->Apply(sizes);
BENCHMARK_CAPTURE(replay_trace, srtf, "srtf")
    ->ArgNames({"jobs", "gpus"})
    ->Args({10'000, 1'000})
    ->Unit(benchmark::kMillisecond)
    ->Iterations(1);

/// Jobs of MuxTune's week, as many and on as many GPUs as are asked for, at the same load per GPU.
traces::Trace week_of(std::int64_t count, std::int64_t gpus) {
  traces::Generator wanted;
  wanted.jobs = count;
  wanted.jobs_per_minute *= static_cast<double>(gpus) / 128;
  return traces::generate(wanted);
}

void share_instances(benchmark::State& state, const char* scheduler, std::vector<std::string> datasets) {
  const traces::Trace trace = week_of(state.range(0), state.range(1));
  sim::RunSettings wanted;
  wanted.scheduler = scheduler;
  wanted.policy = "muxtune";
  wanted.settings.configurations.datasets = std::move(datasets);
  wanted.settings.audited_share = 0;
  workload::Cluster& cluster = wanted.settings.cluster;
  cluster.gpu = "a40";
  cluster.gpus_per_node = 4;
  cluster.intra_node = costmodel::named_link("nvlink", costmodel::device_of("a40"));
  cluster.inter_node = costmodel::named_link("ib-100g", costmodel::device_of("a40"));
  sim::set_gpus(cluster, state.range(1));
  double tokens = 0;
  for (auto _ : state) {
    sim::Study study(trace, costmodel::analytic_profile("a40", costmodel::DataType::bf16));
    tokens += study.run(wanted).run.tokens;
  }
  state.counters["jobs_per_second"] =
      benchmark::Counter(static_cast<double>(state.iterations() * state.range(0)), benchmark::Counter::kIsRate);
  benchmark::DoNotOptimize(tokens);
}

void shared_sizes(benchmark::internal::Benchmark* benchmark) {
  benchmark->ArgNames({"jobs", "gpus"})->Unit(benchmark::kMillisecond)->Iterations(1);
  benchmark->Args({10'000, 1'000})->Args({26'107, 128})->Args({100'000, 10'000})->Args({1'000'000, 100'000});
}
BENCHMARK_CAPTURE(share_instances, fcfs_uniform, "fcfs", {"qa"})->Apply(shared_sizes);
BENCHMARK_CAPTURE(share_instances, mux_uniform, "mux", {"qa"})->Apply(shared_sizes);
BENCHMARK_CAPTURE(share_instances, fcfs_mixed, "fcfs", {"sst2", "qa", "rte"})
    ->ArgNames({"jobs", "gpus"})
    ->Args({26'107, 128})
    ->Unit(benchmark::kMillisecond)
    ->Iterations(1);

}  // namespace
}  // namespace braid

BENCHMARK_MAIN();
