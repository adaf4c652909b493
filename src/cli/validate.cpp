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
#include "planner/predict.h"

namespace braid::cli {
namespace {

/// Peak resident memory of every rank since `baseline`, on rank 0.
std::vector<Bytes> gather_peaks(Bytes baseline, exec::Communicator& communicator) {
  const Bytes mine = exec::peak_resident_memory() - baseline;
  std::vector<Bytes> peaks;
  for (const std::string& part : communicator.gather(std::to_string(mine))) peaks.push_back(std::stoll(part));
  return peaks;
}

/// The two windows with the most tokens, to warm up: they make the primitives and touch the memory for the first time. Then
/// windows evenly over the whole run, so that queued tasks all have some. Times do not depend on what was learned before.
std::vector<std::int64_t> windows_to_run(const planner::FixedPlan& fixed, const planner::WindowInput& input, std::int64_t wanted) {
  const std::int64_t all = planner::window_count(fixed, input);
  const std::int64_t count = std::min(all, wanted);
  std::vector<std::pair<std::int64_t, std::int64_t>> by_tokens;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t window = i * all / count;
    by_tokens.emplace_back(planner::count_tokens(planner::window_program(fixed, input, window), input.workload).computed, window);
  }
  std::vector<std::int64_t> windows;
  for (const auto& [tokens, window] : by_tokens) windows.push_back(window);
  std::sort(by_tokens.rbegin(), by_tokens.rend());
  std::vector<std::int64_t> warm_up;
  for (std::size_t i = 0; i < kWarmUpWindows; ++i) warm_up.push_back(by_tokens[std::min(i, by_tokens.size() - 1)].second);
  windows.insert(windows.begin(), warm_up.begin(), warm_up.end());
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
  options.windows = windows_to_run(plan.fixed, {plan.workload, data.samples}, windows);
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
  std::int64_t windows = 10;
  CommandLine line("braid validate (--plan FILE | --workload FILE) [options]", flags);
  line.add_plan();
  line.add_planning("megatron-pp");
  line.add_out("file for the comparison, as JSON");
  line.add_threads();
  line.add().add_options()("windows", boost::program_options::value(&windows)->default_value(10), "windows to compare, spread over the whole run; two more warm up");
  if (!line.parse(words)) return kSuccess;
  if (windows < 1) throw error("--windows {} is not usable; give 1 or more", windows);
  if (!flags.out.empty() && std::filesystem::exists(flags.out) && !flags.overwrite && exec::launched_ranks() == 0) throw error("{}: exists; give another file or --overwrite", flags.out);
  const planner::Plan plan = plan_from_flags(flags);
  if (!must_launch(plan)) return execute(plan, flags, windows);
  flags.passed_on = {"--windows", std::to_string(windows)};
  return launch_with_plan("validate", plan, flags);
}

}  // namespace braid::cli
