#include <algorithm>
#include <cmath>
#include <cstddef>
#include <ostream>

#include <boost/program_options/value_semantic.hpp>
#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/parallel.h"
#include "cli/command.h"
#include "cli/commands/comparison.h"
#include "cli/commands/operator_comparison.h"
#include "cli/support/backend.h"
#include "cli/support/profiles.h"
#include "cli/support/progress.h"
#include "cli/support/results.h"
#include "cli/support/run_ranks.h"
#include "exec/profiling/reference_pass.h"
#include "planner/program/excerpt.h"
#include "planner/window/predict.h"
#include "planner/window/program_stream.h"

namespace braid::cli {
namespace {

/// Peak memory of every rank, on rank 0.
/// What is run: windows that warm up, then all the others, several times over.
struct Course {
  std::vector<std::int64_t> warm_up;
  std::vector<std::int64_t> round;
  std::int64_t runs = 0;
};

/// What the command's own flags say; 0 where the budget decides.
struct ValidateFlags {
  std::int64_t windows = 0, runs = 0;
  double budget = 0;
  bool operators = false;
};

/// What a window takes in the mean over the run, as predicted: of tasks that take turns it holds some alone.
double window_seconds(const planner::Plan& plan, const planner::WindowInput& input) {
  std::int64_t steps = 0;
  const auto tasks = static_cast<int>(plan.workload.tasks.size());
  for (int task = 0; task < tasks; ++task) steps += input.samples.steps(task);
  const std::int64_t windows = planner::window_count(plan.fixed, input);
  return plan.predicted.step_seconds * static_cast<double>(steps) / static_cast<double>(windows * tasks);
}

/// How many windows warm up, are run, and how often, in about the budget if a window takes as long as predicted; at
/// least one is run once. Those that warm up make the primitives and touch the memory for the first time.
Course course_of_size(double window, const ValidateFlags& own) {
  constexpr std::int64_t kUsualWindows = 5, kUsualRuns = 5, kUsualWarmUp = 2;
  // Setting up, and reference passes between the windows.
  constexpr double kShareOfWindows = 0.85;
  const double affordable = window > 0 ? kShareOfWindows * own.budget / window : 1e9;
  const auto most = static_cast<std::int64_t>(std::clamp(affordable, 1.0, 1e6));
  const std::int64_t warm_up = most >= 8 ? kUsualWarmUp : most >= 2 ? 1 : 0;
  const std::int64_t left = std::max<std::int64_t>(1, most - warm_up);
  Course course;
  course.runs = own.runs > 0      ? own.runs
                : own.windows > 0 ? std::clamp<std::int64_t>(left / own.windows, 1, kUsualRuns)
                                  : std::clamp<std::int64_t>(std::llround(std::sqrt(left)), 1, kUsualRuns);
  course.warm_up.resize(static_cast<std::size_t>(warm_up));
  course.round.resize(static_cast<std::size_t>(
      own.windows > 0 ? own.windows : std::clamp<std::int64_t>(left / course.runs, 1, kUsualWindows)));
  return course;
}

/// To warm up, the windows with the most tokens; then windows evenly over the whole run, so that queued tasks all have
/// some. Times do not depend on what was learned before. Of a plan that does not drain the first windows, which run as
/// one stream.
Course course_of(const planner::Plan& plan, const planner::WindowInput& input, const ValidateFlags& own) {
  const planner::FixedPlan& fixed = plan.fixed;
  Course course = course_of_size(window_seconds(plan, input), own);
  const std::int64_t all = planner::window_count(fixed, input);
  const std::int64_t count = std::min(all, std::ssize(course.round));
  std::vector<std::int64_t>& round = course.round;
  round.clear();
  std::vector<std::pair<std::int64_t, std::int64_t>> by_tokens;
  for (std::int64_t i = 0; i < count; ++i) {
    round.push_back(planner::streams(fixed) ? i : i * all / count);
    const planner::Program program = planner::window_program(fixed, input, round.back());
    by_tokens.emplace_back(planner::count_tokens(program.microbatches, input.workload).computed, round.back());
  }
  std::sort(by_tokens.rbegin(), by_tokens.rend());
  for (std::size_t i = 0; i < course.warm_up.size(); ++i)
    course.warm_up[i] = by_tokens[std::min(i, by_tokens.size() - 1)].second;
  return course;
}

/// Runs the course, and stops after a round where the next one would not end within the budget. All ranks agree.
class Validation {
 public:
  Validation(const planner::Plan& plan, const Data& data, exec::Runner& runner, exec::Communicator& communicator,
             exec::ReferencePass& reference, const CommonFlags& flags, const ValidateFlags& own)
      : plan_(plan),
        data_(data),
        runner_(runner),
        communicator_(communicator),
        reference_(reference),
        own_(own),
        window_(window_seconds(plan, planner::input_of(plan, data.samples))),
        course_(course_of(plan, planner::input_of(plan, data.samples), own)),
        progress_("validating", flags.quiet, Progress::Elsewhere::lines) {
    if (communicator.rank() != 0 || flags.quiet) return;
    fmt::print(stderr, "validating: {} to warm up, then {} windows {} times: about {}\n",
               course_.warm_up.empty() ? "part of a window" : fmt::format("{} windows", course_.warm_up.size()),
               course_.round.size(), course_.runs, duration(window_ * static_cast<double>(windows())));
  }

  Execution run() {
    Execution execution;
    execution.warm_up = course_.warm_up.size();
    if (course_.warm_up.empty()) {
      warm_up_by_part();
    } else {
      add(course_.warm_up, execution);
    }
    for (std::int64_t run = 0; run < course_.runs; ++run) {
      const double before = seconds_since(began_);
      add(course_.round, execution);
      const double now = seconds_since(began_);
      if (own_.runs == 0 && !agree(now + (now - before) < own_.budget)) break;
    }
    execution.reference_seconds.push_back(reference_.seconds_beside(window_, communicator_));
    return execution;
  }

  /// The round once more, to hear what each operator takes, which takes time and memory itself.
  std::vector<Compared> operators() {
    runner_.probe().record(true);
    exec::TrainOptions options;
    options.windows = course_.round;
    options.recorded_windows = options.windows.size();
    const exec::TrainResult heard = exec::train(plan_, data_.samples, runner_, communicator_, options);
    return compare_operators(plan_, heard.recorded, runner_.probe().take_records(), communicator_);
  }

 private:
  std::int64_t windows() const { return std::ssize(course_.warm_up) + course_.runs * std::ssize(course_.round); }

  /// Where not even two windows fit the budget: as much of one as a quarter of it takes. What touches memory for the
  /// first time would have the one window that is compared take a tenth longer.
  void warm_up_by_part() {
    constexpr double kShareOfBudget = 0.25;
    const planner::Program whole =
        planner::window_program(plan_.fixed, {plan_.workload, data_.samples}, course_.round.front());
    const auto microbatches = static_cast<double>(whole.microbatches.size());
    const auto affordable = static_cast<std::int64_t>(kShareOfBudget * own_.budget / window_ * microbatches);
    runner_.run(planner::excerpt(whole, std::max<std::int64_t>(affordable, plan_.ranks())));
  }

  void add(const std::vector<std::int64_t>& windows, Execution& execution) {
    exec::TrainOptions options;
    options.windows = windows;
    options.recorded_windows = windows.size();
    options.before_begin = [&] {
      execution.reference_seconds.push_back(reference_.seconds_beside(window_, communicator_));
    };
    options.on_window = [&](const exec::WindowReport& report) {
      progress_.update(static_cast<double>(++done_) / static_cast<double>(this->windows()),
                       fmt::format("a window took {}", duration(report.seconds)));
    };
    exec::TrainResult result = exec::train(plan_, data_.samples, runner_, communicator_, options);
    for (exec::RecordedWindow& window : result.recorded) execution.result.recorded.push_back(std::move(window));
    execution.result.ended.insert(result.ended.begin(), result.ended.end());
  }

  bool agree(bool mine) {
    std::byte answer{mine};
    communicator_.broadcast(std::span(&answer, 1));
    return answer != std::byte{0};
  }

  const planner::Plan& plan_;
  const Data& data_;
  exec::Runner& runner_;
  exec::Communicator& communicator_;
  exec::ReferencePass& reference_;
  const ValidateFlags& own_;
  const SteadyClock::time_point began_ = SteadyClock::now();
  const double window_;  // seconds, as predicted
  const Course course_;
  Progress progress_;
  std::int64_t done_ = 0;
};

int execute(const planner::Plan& plan, const CommonFlags& flags, const ValidateFlags& own) {
  const std::unique_ptr<exec::Communicator> communicator = communicator_for(plan);
  check_ranks_are_alike(plan, *communicator);
  set_thread_count(threads_of_rank(flags, plan.ranks()));
  const Data data = load_data(plan.workload, true);
  const std::unique_ptr<kernels::Device> device = make_device(flags, plan);
  // Of a GPU this process holds nothing for anything but the run.
  const Bytes without_run = device->host_memory() ? device->held() : 0;
  exec::ReferencePass(plan.workload.backbone, *device);
  device->trim();
  const Bytes kept = device->held() - without_run;  // by libraries, as they would for the run alone
  // What it holds from here on is none of the run's.
  exec::ReferencePass reference(plan.workload.backbone, *device);
  device->forget_most_held();
  const Bytes baseline = device->held() - kept;
  const exec::RunInput input{plan.fixed, plan.workload, data.samples, data.datasets};
  exec::Runner runner(input, *communicator, *device);
  Validation validation(plan, data, runner, *communicator, reference, flags, own);
  Execution execution = validation.run();
  execution.peak_memory = gather_bytes(device->most_held() - baseline - runner.mapped_weights(), *communicator);
  std::vector<Compared> operators;
  if (own.operators) operators = validation.operators();
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
  line.add_planning("braid");
  line.add_out("file for the comparison, as JSON");
  line.add_threads();
  line.add().add_options()("budget", boost::program_options::value(&own.budget)->default_value(120),
                           "seconds that the windows may take, as many as fit and one at least")(
      "windows", boost::program_options::value(&own.windows),
      "windows to compare, spread over the whole run, more of which warm up; left out: up to 5")(
      "runs", boost::program_options::value(&own.runs),
      "times that each is run, in turns; medians are compared; left out: up to 5")(
      "operators", boost::program_options::bool_switch(&own.operators),
      "also what each kind of operator takes, in one more run");
  if (!line.parse(words)) return kSuccess;
  if (!(own.budget > 0)) throw error("--budget {} is not usable; give seconds, more than 0", own.budget);
  if (line.given("windows") && own.windows < 1) throw error("--windows {} is not usable; give 1 or more", own.windows);
  if (line.given("runs") && own.runs < 1) throw error("--runs {} is not usable; give 1 or more", own.runs);
  if (!flags.out.empty() && std::filesystem::exists(flags.out) && !flags.overwrite && exec::launched_ranks() == 0)
    throw error("{}: exists; give another file or --overwrite", flags.out);
  const planner::Plan plan = plan_from_flags(flags);
  if (backend_of(flags, plan) != plan.profile.backend)
    throw error("{}: predicts --backend {}; plan anew to validate {}", flags.plan, plan.profile.backend, flags.backend);
  if (!flags.plan.empty() && exec::launched_ranks() == 0) check_machine(plan.profile, flags.plan, flags);
  if (!must_launch(plan, plan.profile.backend)) return execute(plan, flags, own);
  flags.passed_on = {"--budget", fmt::format("{}", own.budget)};
  const auto pass_on = [&](const char* flag, std::int64_t value) {
    if (value > 0) flags.passed_on.insert(flags.passed_on.end(), {flag, std::to_string(value)});
  };
  pass_on("--windows", own.windows);
  pass_on("--runs", own.runs);
  if (own.operators) flags.passed_on.emplace_back("--operators");
  return launch_with_plan("validate", plan, flags);
}

}  // namespace braid::cli
