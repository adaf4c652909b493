#include "cli/commands/training_log.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <sstream>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "cli/support/results.h"

namespace braid::cli {
namespace {

constexpr double kSecondsBetweenLines = 2;
/// Fewer windows tell little: their samples are longer or shorter than others.
constexpr std::int64_t kFewestWindows = 6;
constexpr double kFewestSeconds = 2;
/// By this share steps may take other than predicted without a word, and once that was said, by half of it.
constexpr double kAllowedError = 0.1;

/// Of whichever sign a NaN is, it reads the same.
std::string loss_text(double loss) {
  return std::isnan(loss) ? "nan" : fmt::format("{:.4f}", loss);
}

/// JSON has no numbers for these.
nlohmann::ordered_json number(double value) {
  if (std::isfinite(value)) return value;
  return nullptr;
}

}  // namespace

TrainingLog::TrainingLog(const planner::Plan& plan, const workload::SampleIndex& samples,
                         const std::filesystem::path& metrics, bool quiet, const exec::Checkpoint* begun)
    : plan_(plan),
      samples_(samples),
      metrics_(metrics),
      quiet_(quiet),
      lines_(plan.workload.tasks.size()),
      last_print_(SteadyClock::now()) {
  check_writable(metrics);
  write_file(metrics, begun && std::filesystem::exists(metrics) ? kept_metrics(metrics, *begun) : "");
  metrics_ = AppendedFile(metrics);
}

/// Lines of steps that are taken again are left out, and one that was cut short.
std::string TrainingLog::kept_metrics(const std::filesystem::path& metrics, const exec::Checkpoint& begun) {
  std::string kept;
  std::istringstream text(read_file(metrics));
  for (std::string line; std::getline(text, line);) {
    const nlohmann::json json = nlohmann::json::parse(line, nullptr, false);
    if (json.is_discarded() || !json.contains("task") || !json.contains("step")) continue;
    const auto task = std::ranges::find(plan_.workload.tasks, json["task"].get<std::string>(), &workload::Task::name);
    if (task == plan_.workload.tasks.end()) {  // of a run before, which had others
      kept += line + "\n";
      continue;
    }
    const auto place = static_cast<std::size_t>(task - plan_.workload.tasks.begin());
    const auto step = json["step"].get<std::int64_t>();
    TaskLine& told = lines_[place];
    if (json.contains("eval_loss")) {
      const std::vector<exec::Evaluated>& evaluations = begun.tasks[place].evaluations;
      const auto found = std::ranges::find(evaluations, step, &exec::Evaluated::step);
      if (found == evaluations.end()) continue;
      kept += line + "\n";
      told.evaluations.push_back(*found);
      continue;
    }
    if (step > begun.tasks[place].taken) continue;
    kept += line + "\n";
    const double loss = json["loss"].is_number() ? json["loss"].get<double>() : std::nan("");
    if (told.steps_before++ == 0) told.first_loss = loss;
    told.last.loss = loss;
    told.tokens += json["tokens"].get<std::int64_t>();
  }
  return kept;
}

std::vector<double> TrainingLog::last_losses() const {
  std::vector<double> losses;
  for (const TaskLine& line : lines_)
    losses.push_back(line.steps_before + line.steps > 0 ? line.last.loss : std::nan(""));
  return losses;
}

void TrainingLog::on_window(const exec::WindowReport& report, const TimeLeft& left) {
  for (const exec::StepMetrics& step : report.steps) {
    TaskLine& line = lines_[static_cast<std::size_t>(step.task)];
    if (line.steps++ == 0 && line.steps_before == 0) line.first_loss = step.loss;
    line.last = step;
    line.tokens += step.tokens;
    const double seconds = report.seconds / static_cast<double>(report.steps.size());
    line.seconds += seconds;
    if (windows_seen_ == 0) continue;
    ++line.warm_steps;
    line.warm_seconds += seconds;
  }
  ++windows_seen_;
  computed_tokens_ += report.computed_tokens;
  seconds_ += report.seconds;
  flops_ += report.backbone_flops;
  write_metrics(report);
  for (const planner::TaskIndex task : report.diverged) {
    const exec::StepMetrics& last = lines_[static_cast<std::size_t>(task)].last;
    fmt::print(
        stderr,
        "{}: the {} of step {} is not finite; the task stops here and its adapter is not written, the others go on "
        "(lower its lr?)\n",
        plan_.workload.tasks[static_cast<std::size_t>(task)].name, std::isfinite(last.loss) ? "gradient" : "loss",
        last.step);
  }
  if (report.cancelled)
    fmt::print(stderr, "{}: cancelled after step {}; its adapter is written as it is, the others go on\n",
               plan_.workload.tasks[static_cast<std::size_t>(*report.cancelled)].name,
               lines_[static_cast<std::size_t>(*report.cancelled)].steps_before +
                   lines_[static_cast<std::size_t>(*report.cancelled)].steps);
  compare_with_plan(report);
  const double since = seconds_since(last_print_);
  if (since < kSecondsBetweenLines && report.window + 1 < report.windows) return;
  last_print_ = SteadyClock::now();
  print_progress(report, left);
}

void TrainingLog::on_evaluation(const exec::EvaluationReport& report) {
  const workload::Task& task = plan_.workload.tasks[static_cast<std::size_t>(report.task)];
  lines_[static_cast<std::size_t>(report.task)].evaluations.push_back({report.step, report.loss.loss});
  nlohmann::ordered_json line = {
      {"task", task.name},   {"step", report.step},     {"eval_loss", number(report.loss.loss)},
      {"best", report.best}, {"tokens", report.tokens}, {"seconds", report.seconds}};
  if (task.objective.pairs()) {
    line["eval_reward_margin"] = number(report.loss.margin);
    line["eval_reward_accuracy"] = report.loss.accuracy;
  }
  write_line(line);
  if (!quiet_)
    fmt::print(stderr, "{:12} step {:>4}/{}  eval loss {}{}\n", task.name, report.step, samples_.steps(report.task),
               loss_text(report.loss.loss), report.best ? ", the best until now" : "");
}

void TrainingLog::on_ended(planner::TaskIndex task, exec::Ended how) const {
  const workload::Task& spec = plan_.workload.tasks[static_cast<std::size_t>(task)];
  if (how == exec::Ended::early)
    fmt::print(stderr, "{}: {} evaluations were no better than the best; it ends here, the others go on\n", spec.name,
               spec.evaluation->patience);
  if (how == exec::Ended::outranked && !quiet_)
    fmt::print(stderr, "{}: others of search {} are better; it ends here\n", spec.name, spec.search->name);
}

void TrainingLog::print_rankings(const exec::EndedTasks& ended) const {
  std::map<std::string, std::vector<std::pair<double, std::size_t>>> searches;
  for (std::size_t task = 0; task < lines_.size(); ++task) {
    const std::optional<workload::Search>& search = plan_.workload.tasks[task].search;
    const std::optional<exec::Evaluated> best = exec::best_of(lines_[task].evaluations);
    if (search) searches[search->name].emplace_back(best ? best->loss : std::numeric_limits<double>::infinity(), task);
  }
  for (auto& [name, ranking] : searches) {
    std::ranges::sort(ranking);
    fmt::print("search {}, by the best eval loss:\n", name);
    for (std::size_t place = 0; place < ranking.size(); ++place) {
      const auto& [loss, task] = ranking[place];
      const TaskLine& line = lines_[task];
      const auto how = ended.find(static_cast<planner::TaskIndex>(task));
      const bool finished = line.steps_before + line.steps == samples_.steps(static_cast<int>(task));
      fmt::print("{:>4}. {:<32} {:>9} {:>8} steps  {}\n", place + 1, plan_.workload.tasks[task].name,
                 std::isfinite(loss) ? loss_text(loss) : "", line.steps_before + line.steps,
                 how != ended.end() ? exec::name(how->second)
                 : finished         ? "finished"
                                    : "");
    }
  }
}

void TrainingLog::compare_with_plan(const exec::WindowReport& report) {
  const double predicted = plan_.predicted.step_seconds, measured = warm_step();
  if (quiet_ || windows_seen_ < kFewestWindows || seconds_ < kFewestSeconds || predicted <= 0 || measured <= 0) return;
  const double error = prediction_error();
  const bool parted = std::abs(error) > (parted_ ? kAllowedError / 2 : kAllowedError);
  if (parted == parted_) return;
  parted_ = parted;
  if (parted) {
    fmt::print(
        stderr,
        "window {}: a step of every task takes {}, {:.0f} % {} than the {} that the plan predicts; {}`braid validate` "
        "shows where they part\n",
        report.window + 1, duration(measured), 100 * std::abs(error), error > 0 ? "longer" : "shorter",
        duration(predicted), error > 0 ? "is the machine busy? " : "");
  } else {
    fmt::print(stderr, "window {}: a step of every task takes {}, as the plan predicts\n", report.window + 1,
               duration(measured));
  }
}

double TrainingLog::prediction_error() const {
  const double predicted = plan_.predicted.step_seconds, measured = warm_step();
  return predicted > 0 && measured > 0 ? measured / predicted - 1 : 0;
}

double TrainingLog::warm_step() const {
  double step = 0;
  for (const TaskLine& line : lines_) {
    if (line.warm_steps == 0) return 0;
    step += line.warm_seconds / static_cast<double>(line.warm_steps);
  }
  return step;
}

void TrainingLog::write_metrics(const exec::WindowReport& report) {
  for (const exec::StepMetrics& step : report.steps) {
    const workload::Task& task = plan_.workload.tasks[static_cast<std::size_t>(step.task)];
    nlohmann::ordered_json line = {{"task", task.name},
                                   {"step", step.step},
                                   {"loss", number(step.loss)},
                                   {"lr", step.learning_rate},
                                   {"grad_norm", number(step.gradient_norm)},
                                   {"tokens", step.tokens},
                                   {"seconds", step.seconds}};
    if (task.objective.pairs()) {
      line["reward_margin"] = number(step.reward_margin);
      line["reward_accuracy"] = step.reward_accuracy;
    }
    write_line(line);
  }
}

/// On a full disk the run goes on.
void TrainingLog::write_line(const nlohmann::ordered_json& line) {
  const bool written = metrics_.append(line.dump() + "\n");
  if (written == !told_of_waiting_) return;
  told_of_waiting_ = !written;
  fmt::print(stderr, "{}: {}\n", metrics_.path().string(),
             written ? "what could not be written is there now"
                     : "cannot be written; the run goes on, and lines are written once there is room");
}

bool TrainingLog::flush() {
  return metrics_.append("");
}

void TrainingLog::print_progress(const exec::WindowReport& report, const TimeLeft& left) {
  if (quiet_) return;
  const double peak = plan_.profile.peak_flops * plan_.ranks();
  const std::int64_t windows_left = report.windows - report.window - 1;
  const std::string share = peak > 0 ? fmt::format(", {:.0f} % of GEMM peak", 100 * flops_ / seconds_ / peak) : "";
  const std::string more = windows_left > 0 ? fmt::format(", {} left", duration(left.seconds())) : "";
  for (const exec::StepMetrics& step : report.steps) {
    const auto task = static_cast<std::size_t>(step.task);
    if (step.step != lines_[task].last.step) continue;  // of several in a window the last
    fmt::print(stderr, "{:12} step {:>4}/{}  loss {}  {} tokens/s{}{}\n", plan_.workload.tasks[task].name, step.step,
               samples_.steps(step.task), loss_text(step.loss),
               grouped(static_cast<double>(step.tokens) / step.seconds), share, more);
  }
}

void TrainingLog::print_summary() const {
  const bool evaluates = std::ranges::any_of(lines_, [](const TaskLine& line) { return !line.evaluations.empty(); });
  std::size_t width = 12;
  for (const workload::Task& task : plan_.workload.tasks) width = std::max(width, task.name.size());
  fmt::print("{:{}} {:>6} {:>11} {:>11} {:>12}{}\n", "task", width, "steps", "first loss", "last loss", "data tokens",
             evaluates ? fmt::format(" {:>15} {:>8}", "best eval loss", "at step") : "");
  for (std::size_t task = 0; task < lines_.size(); ++task) {
    const TaskLine& line = lines_[task];
    fmt::print("{:{}} {:>6} {:>11} {:>11} {:>12}", plan_.workload.tasks[task].name, width,
               line.steps_before + line.steps, loss_text(line.first_loss), loss_text(line.last.loss),
               grouped(static_cast<double>(line.tokens)));
    if (const std::optional<exec::Evaluated> best = exec::best_of(line.evaluations))
      fmt::print(" {:>15} {:>8}", loss_text(best->loss), best->step);
    fmt::print("\n");
  }
  if (seconds_ <= 0) return;
  const double peak = plan_.profile.peak_flops * plan_.ranks();
  fmt::print("{} computed tokens/s", grouped(static_cast<double>(computed_tokens_) / seconds_));
  if (peak > 0) fmt::print(", {:.0f} % of the GEMM peak in the profile", 100 * flops_ / seconds_ / peak);
  fmt::print("\n");
  if (const double step = measured_step(); step > 0)
    fmt::print("a step of every task took {}, predicted {} ({:+.1f} %)\n", duration(step),
               duration(plan_.predicted.step_seconds), 100 * (plan_.predicted.step_seconds / step - 1));
  if (!most_held_.empty())
    fmt::print("{} at most, libraries and all\n",
               most_held_.size() == 1
                   ? fmt::format("{} of memory", describe_bytes(most_held_.front()))
                   : fmt::format("{} of memory a rank", describe_bytes(*std::ranges::max_element(most_held_))));
}

std::string TrainingLog::summary_json() const {
  nlohmann::ordered_json tasks = nlohmann::ordered_json::array();
  for (std::size_t task = 0; task < lines_.size(); ++task) {
    const TaskLine& line = lines_[task];
    nlohmann::ordered_json told = {{"task", plan_.workload.tasks[task].name},
                                   {"steps", line.steps_before + line.steps},
                                   {"first_loss", number(line.first_loss)},
                                   {"last_loss", number(line.last.loss)},
                                   {"data_tokens", line.tokens}};
    if (const std::optional<exec::Evaluated> best = exec::best_of(line.evaluations))
      told["best_evaluation"] = {{"step", best->step}, {"eval_loss", best->loss}};
    tasks.push_back(std::move(told));
  }
  const nlohmann::ordered_json json = {
      {"format", 1},
      {"tasks", tasks},
      {"seconds", seconds_},
      {"computed_tokens_per_second", seconds_ > 0 ? static_cast<double>(computed_tokens_) / seconds_ : 0.0},
      {"step_seconds", {{"predicted", plan_.predicted.step_seconds}, {"measured", measured_step()}}},
      {"most_memory_bytes", most_held_}};
  return json.dump(1) + "\n";
}

double TrainingLog::measured_step() const {
  double step = 0;
  for (const TaskLine& line : lines_) {
    if (line.steps == 0) return 0;
    step += line.seconds / static_cast<double>(line.steps);
  }
  return step;
}

}  // namespace braid::cli
