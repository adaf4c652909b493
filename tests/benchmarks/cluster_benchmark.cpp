// How long a trace of jobs takes to replay as recorded, on one core: by jobs, GPUs and scheduler. Each job keeps its
// recorded time and GPUs, from one flat pool. And as fine-tuning tasks that share instances, planning included: on one
// instance model, as every run of a study has it. Philly itself is read and replayed where BRAID_TRACES has it. The
// peak of memory is the process's: run one benchmark at a time for its own.
#include <cstdlib>
#include <filesystem>

#include <benchmark/benchmark.h>
#include <sys/resource.h>

#include "sim/cluster/study/study.h"
#include "traces/generate.h"
#include "traces/read_trace.h"
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

void tell(benchmark::State& state, double jobs) {
  state.counters["jobs_per_second"] = benchmark::Counter(jobs, benchmark::Counter::kIsRate);
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  state.counters["peak_MiB"] = static_cast<double>(usage.ru_maxrss) / 1024;
}

void replay(benchmark::State& state, const std::vector<sim::ClusterJob>& jobs, std::int64_t gpus,
            const char* scheduler) {
  std::int64_t finished = 0;
  for (auto _ : state) {
    const auto chosen = sim::make_scheduler(scheduler, jobs);
    sim::TaskSets sets = sim::exclusive_sets();
    const sim::ClusterRun run = sim::simulate_cluster(jobs, {gpus / 4, 4, true, sim::Placement::packed}, *chosen, sets);
    for (const sim::JobOutcome& outcome : run.outcomes) finished += outcome.finished();
  }
  tell(state, static_cast<double>(finished));
}

/// Where BRAID_TRACES has it.
std::filesystem::path philly() {
  const char* folder = std::getenv("BRAID_TRACES");
  return folder ? std::filesystem::path(folder) / "philly.csv" : "";
}

void read_philly(benchmark::State& state) {
  if (!std::filesystem::exists(philly())) return state.SkipWithError("BRAID_TRACES has no philly.csv");
  std::size_t jobs = 0;
  for (auto _ : state) jobs += traces::read_trace(philly(), {}).jobs.size();
  tell(state, static_cast<double>(jobs));
}
BENCHMARK(read_philly)->Unit(benchmark::kMillisecond)->Iterations(3);

void replay_philly(benchmark::State& state) {
  if (!std::filesystem::exists(philly())) return state.SkipWithError("BRAID_TRACES has no philly.csv");
  replay(state, sim::recorded_jobs(traces::read_trace(philly(), {})), 2500, "fcfs");
}
BENCHMARK(replay_philly)->Unit(benchmark::kMillisecond)->Iterations(3);

void replay_trace(benchmark::State& state, const char* scheduler) {
  replay(state, philly_like(state.range(0), state.range(1)), state.range(1), scheduler);
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
  benchmark::DoNotOptimize(tokens);
  tell(state, static_cast<double>(state.iterations() * state.range(0)));
}

void shared_sizes(benchmark::internal::Benchmark* benchmark) {
  benchmark->ArgNames({"jobs", "gpus"})->Unit(benchmark::kMillisecond)->Iterations(1);
  benchmark->Args({10'000, 1'000})->Args({26'107, 128})->Args({100'000, 10'000})->Args({1'000'000, 100'000});
}
BENCHMARK_CAPTURE(share_instances, fcfs_uniform, "fcfs", {"qa"})->Apply(shared_sizes);
BENCHMARK_CAPTURE(share_instances, mux_uniform, "mux", {"qa"})->Apply(shared_sizes);
BENCHMARK_CAPTURE(share_instances, mux_mixed, "mux", {"sst2", "qa", "rte"})->Apply(shared_sizes);
BENCHMARK_CAPTURE(share_instances, fcfs_mixed, "fcfs", {"sst2", "qa", "rte"})
    ->ArgNames({"jobs", "gpus"})
    ->Args({2'000, 128})
    ->Args({26'107, 128})
    ->Unit(benchmark::kMillisecond)
    ->Iterations(1);

}  // namespace
}  // namespace braid

BENCHMARK_MAIN();
