#include <fmt/core.h>

#include <algorithm>
#include <boost/program_options/value_semantic.hpp>
#include <nlohmann/json.hpp>
#include <ostream>

#include "base/error.h"
#include "base/file.h"
#include "base/parallel.h"
#include "cli/command.h"
#include "cli/comparison.h"
#include "cli/results.h"
#include "cli/run_ranks.h"
#include "exec/process_memory.h"

namespace braid::cli {
namespace {

/// Peak resident memory of every rank since `baseline`, on rank 0.
std::vector<Bytes> gather_peaks(Bytes baseline, exec::Communicator& communicator) {
  const Bytes mine = exec::peak_resident_memory() - baseline;
  std::vector<Bytes> peaks;
  for (const std::string& part : communicator.gather(std::to_string(mine))) peaks.push_back(std::stoll(part));
  return peaks;
}

/// Windows evenly over the whole run, so that queued tasks all have some. Times do not depend on what was learned before.
std::vector<std::int64_t> spread_windows(std::int64_t all, std::int64_t wanted) {
  std::vector<std::int64_t> windows;
  const std::int64_t count = std::min(all, wanted);
  for (std::int64_t i = 0; i < count; ++i) windows.push_back(i * all / count);
  return windows;
}

int execute(const planner::Plan& plan, const CommonFlags& flags, std::int64_t windows) {
  const std::unique_ptr<exec::Communicator> communicator = communicator_for(plan);
  set_thread_count(threads_of_rank(flags, plan.ranks()));
  const Data data = load_data(plan.workload, true);
  exec::reset_peak_memory();
  const Bytes baseline = exec::resident_memory();
  const exec::RunInput input{plan.fixed, plan.workload, data.samples, data.datasets};
  exec::Runner runner(input, *communicator);
  exec::TrainOptions options;
  options.windows = spread_windows(planner::window_count(plan.fixed, {plan.workload, data.samples}), windows);
  options.recorded_windows = options.windows.size();
  const exec::TrainResult result = exec::train(plan, data.samples, runner, *communicator, options);
  const std::vector<Bytes> peaks = gather_peaks(baseline, *communicator);
  if (communicator->rank() != 0) return kSuccess;
  const Comparison comparison = compare(plan, data.samples, result, peaks);
  if (!flags.out.empty()) write_file(flags.out, to_json(comparison));
  if (flags.json) {
    fmt::print("{}", to_json(comparison));
  } else {
    print(comparison);
  }
  return kSuccess;
}

}  // namespace

int run_validate(const std::vector<std::string>& words) {
  CommonFlags flags;
  std::int64_t windows = 12;
  CommandLine line("braid validate (--plan FILE | --workload FILE) [options]", flags);
  line.add_plan();
  line.add_planning("megatron-pp");
  line.add_out("file for the comparison, as JSON");
  line.add_threads();
  line.add().add_options()("windows", boost::program_options::value(&windows)->default_value(12), "windows to run, spread over the whole; the first two warm up");
  if (!line.parse(words)) return kSuccess;
  if (windows < 3) throw error("--windows {} is not usable; give 3 or more, as the first two warm up", windows);
  if (!flags.out.empty() && std::filesystem::exists(flags.out) && !flags.overwrite && exec::launched_ranks() == 0) throw error("{}: exists; give another file or --overwrite", flags.out);
  const planner::Plan plan = plan_from_flags(flags);
  if (!must_launch(plan)) return execute(plan, flags, windows);
  flags.passed_on = {"--windows", std::to_string(windows)};
  return launch_with_plan("validate", plan, flags);
}

}  // namespace braid::cli
