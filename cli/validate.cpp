#include <algorithm>
#include <ostream>

#include <boost/program_options/value_semantic.hpp>
#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/parallel.h"
#include "cli/command.h"
#include "cli/comparison.h"
#include "cli/operator_comparison.h"
#include "cli/results.h"
#include "cli/run_ranks.h"
#include "exec/process_memory.h"
#include "exec/reference_pass.h"
#include "planner/window/predict.h"
#include "planner/window/program_stream.h"

namespace braid::cli {
namespace {

/// Peak resident memory of every rank since `baseline`, on rank 0.
std::vector<Bytes> gather_peaks(Bytes baseline, exec::Communicator& communicator) {
  const Bytes mine = exec::peak_resident_memory() - baseline;
  std::vector<Bytes> peaks;
  for (const std::string& part : communicator.gather(std::to_string(mine))) peaks.push_back(std::stoll(part));
  return peaks;
}

/// How many windows are run first and left out: they make the primitives and touch the memory for the first time.
constexpr std::size_t kWarmUpWindows = 2;

/// The windows with the most tokens, to warm up; then, `runs` times over, windows evenly over the whole run, so that
/// queued tasks all have some. Times do not depend on what was learned before. Of a plan that does not drain the first
/// windows, which run as one stream.
std::vector<std::int64_t> windows_to_run(const planner::FixedPlan& fixed, const planner::WindowInput& input,
                                         std::int64_t wanted, std::int64_t runs) {
  const std::int64_t all = planner::window_count(fixed, input);
  const std::int64_t count = std::min(all, wanted);
  std::vector<std::int64_t> round;
  std::vector<std::pair<std::int64_t, std::int64_t>> by_tokens;
  for (std::int64_t i = 0; i < count; ++i) {
    round.push_back(planner::streams(fixed) ? i : i * all / count);
    const planner::Program program = planner::window_program(fixed, input, round.back());
    by_tokens.emplace_back(planner::count_tokens(program.microbatches, input.workload).computed, round.back());
  }
  std::sort(by_tokens.rbegin(), by_tokens.rend());
  std::vector<std::int64_t> windows;
  for (std::size_t i = 0; i < kWarmUpWindows; ++i)
    windows.push_back(by_tokens[std::min(i, by_tokens.size() - 1)].second);
  for (std::int64_t run = 0; run < runs; ++run) windows.insert(windows.end(), round.begin(), round.end());
  return windows;
}

/// What the command's own flags say.
struct ValidateFlags {
  std::int64_t windows = 0, runs = 0;
  bool operators = false;
};

int execute(const planner::Plan& plan, const CommonFlags& flags, const ValidateFlags& own) {
  const std::unique_ptr<exec::Communicator> communicator = communicator_for(plan);
  set_thread_count(threads_of_rank(flags, plan.ranks()));
  const Data data = load_data(plan.workload, true);
  const Bytes without_run = exec::resident_memory();
  exec::ReferencePass(plan.workload.backbone);
  exec::return_free_memory();
  const Bytes kept = exec::resident_memory() - without_run;  // by libraries, as they would for the run alone
  // What it holds from here on is none of the run's.
  exec::ReferencePass reference(plan.workload.backbone);
  exec::reset_peak_memory();
  const Bytes baseline = exec::resident_memory() - kept;
  const exec::RunInput input{plan.fixed, plan.workload, data.samples, data.datasets};
  exec::Runner runner(input, *communicator);
  exec::TrainOptions options;
  options.windows = windows_to_run(plan.fixed, {plan.workload, data.samples}, own.windows, own.runs);
  options.recorded_windows = options.windows.size();
  Execution execution;
  const auto pace = [&] { execution.reference_seconds.push_back(reference.seconds(*communicator)); };
  options.before_begin = pace;
  execution.warm_up = kWarmUpWindows;
  execution.result = exec::train(plan, data.samples, runner, *communicator, options);
  execution.peak_memory = gather_peaks(baseline, *communicator);
  pace();
  // By themselves: to listen to operators takes time and memory.
  std::vector<Compared> operators;
  if (own.operators) {
    options.before_begin = nullptr;
    options.windows.erase(options.windows.begin(), options.windows.begin() + kWarmUpWindows);
    options.windows.resize(options.windows.size() / static_cast<std::size_t>(own.runs));
    runner.probe().recording = true;
    const exec::TrainResult heard = exec::train(plan, data.samples, runner, *communicator, options);
    operators = compare_operators(plan, heard.recorded, runner.probe().records, *communicator);
  }
  if (communicator->rank() != 0) return kSuccess;
  Comparison comparison = compare(plan, execution);
  comparison.operators = operators;
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
  ValidateFlags own;
  CommandLine line("braid validate (--plan FILE | --workload FILE) [options]", flags);
  line.add_plan();
  line.add_planning("megatron-pp");
  line.add_out("file for the comparison, as JSON");
  line.add_threads();
  line.add().add_options()("windows", boost::program_options::value(&own.windows)->default_value(5),
                           "windows to compare, spread over the whole run; two more warm up")(
      "runs", boost::program_options::value(&own.runs)->default_value(5),
      "times that each is run, in turns; medians are compared")(
      "operators", boost::program_options::bool_switch(&own.operators),
      "also what each kind of operator takes, in one more run");
  if (!line.parse(words)) return kSuccess;
  if (own.windows < 1) throw error("--windows {} is not usable; give 1 or more", own.windows);
  if (own.runs < 1) throw error("--runs {} is not usable; give 1 or more", own.runs);
  if (!flags.out.empty() && std::filesystem::exists(flags.out) && !flags.overwrite && exec::launched_ranks() == 0)
    throw error("{}: exists; give another file or --overwrite", flags.out);
  const planner::Plan plan = plan_from_flags(flags);
  if (!must_launch(plan)) return execute(plan, flags, own);
  flags.passed_on = {"--windows", std::to_string(own.windows), "--runs", std::to_string(own.runs)};
  if (own.operators) flags.passed_on.emplace_back("--operators");
  return launch_with_plan("validate", plan, flags);
}

}  // namespace braid::cli
