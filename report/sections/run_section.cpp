#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/core.h>

#include "report/charts/line_chart.h"
#include "report/charts/scatter_chart.h"
#include "report/sections/sections.h"

namespace braid::report {
namespace {

std::string loss_text(double loss) {
  return std::isfinite(loss) ? fmt::format("{:.4f}", loss) : "–";
}

/// The lowest; nothing where none is finite.
std::optional<TrainingRun::Evaluation> best_of(const TrainingRun::Task& task) {
  std::optional<TrainingRun::Evaluation> best;
  for (const TrainingRun::Evaluation& one : task.evaluations)
    if (std::isfinite(one.loss) && (!best || one.loss < best->loss)) best = one;
  return best;
}

Table task_table(const TrainingRun& run) {
  const bool evaluates =
      std::ranges::any_of(run.tasks, [](const TrainingRun::Task& task) { return !task.evaluations.empty(); });
  Table table{{"task", "state", "steps", "first loss", "last loss", "data tokens"}, {}};
  if (evaluates) table.columns.insert(table.columns.end(), {"best eval loss", "at step"});
  for (const TrainingRun::Task& task : run.tasks) {
    double tokens = 0;
    for (const TrainingRun::Step& step : task.steps) tokens += step.tokens;
    std::vector<std::string> row = {task.name,
                                    task.state,
                                    fmt::format("{}/{}", task.taken, task.planned),
                                    task.steps.empty() ? "" : loss_text(task.steps.front().loss),
                                    task.steps.empty() ? "" : loss_text(task.steps.back().loss),
                                    number_text(tokens)};
    if (evaluates) {
      const auto best = best_of(task);
      row.push_back(best ? loss_text(best->loss) : "");
      row.push_back(best ? std::to_string(best->step) : "");
    }
    table.rows.push_back(std::move(row));
  }
  return table;
}

/// "all 4 tasks", or how many of them.
std::string of_tasks(std::size_t some, std::size_t all) {
  if (some == all) return all == 1 ? "the task" : fmt::format("all {} tasks", all);
  return fmt::format("{} of {} tasks", some, all);
}

void add_losses(const TrainingRun& run, Section& section) {
  LineChart losses, evaluations, accuracies;
  std::size_t fell = 0, trained = 0;
  double least = std::numeric_limits<double>::infinity(), most = 0;
  for (const TrainingRun::Task& task : run.tasks) {
    Series loss{task.name, {}}, evaluation{task.name, {}, false, true}, accuracy{task.name, {}};
    for (const TrainingRun::Step& step : task.steps) {
      loss.points.emplace_back(step.step, step.loss);
      if (step.loss > 0) least = std::min(least, step.loss), most = std::max(most, step.loss);
      if (step.reward_accuracy) accuracy.points.emplace_back(step.step, *step.reward_accuracy);
    }
    for (const TrainingRun::Evaluation& one : task.evaluations) evaluation.points.emplace_back(one.step, one.loss);
    if (!task.steps.empty()) {
      ++trained;
      fell += task.steps.back().loss < task.steps.front().loss ? 1 : 0;
    }
    losses.series.push_back(std::move(loss));
    if (!evaluation.points.empty()) evaluations.series.push_back(std::move(evaluation));
    if (!accuracy.points.empty()) accuracies.series.push_back(std::move(accuracy));
  }
  if (trained == 0) return;
  losses.x.label = evaluations.x.label = accuracies.x.label = "step of the task";
  losses.y = {"loss", most > 20 * least};
  losses.what = fmt::format("The loss of {} is lower at the end than at the first step.", of_tasks(fell, trained));
  section.figures.push_back({losses.what, to_html(losses), {}});
  if (!evaluations.series.empty()) {
    const TrainingRun::Task* winner = nullptr;
    for (const TrainingRun::Task& task : run.tasks)
      if (best_of(task) && (!winner || best_of(task)->loss < best_of(*winner)->loss)) winner = &task;
    evaluations.y.label = "loss on what is held out";
    evaluations.what = winner ? fmt::format("On what is held out the lowest loss is {} of {}, after step {}.",
                                            loss_text(best_of(*winner)->loss), winner->name, best_of(*winner)->step)
                              : "No evaluation has a finite loss.";
    section.figures.push_back({evaluations.what, to_html(evaluations), {}});
  }
  if (!accuracies.series.empty()) {
    accuracies.y = {"share of pairs", false, 0.0, 1.0};
    accuracies.what = "The share of pairs whose chosen answer has the larger reward.";
    section.figures.push_back({accuracies.what, to_html(accuracies), {}});
  }
}

/// Predicted above measured, of the windows that both have.
void add_pipelines(const TrainingRun& run, const ReportTools& tools, Section& section) {
  if (!run.trace || run.trace->events.empty()) return;
  std::vector<std::pair<std::string, Trace>> traces;
  std::string why;
  const std::string text = tools.predict && run.plan ? tools.predict(run.plan->file, why) : "";
  Trace measured = *run.trace;
  measured.shift_to_zero();
  // A run's trace has what activations and messages hold after each pass.
  for (auto& [rank, samples] : measured.memory) {
    if (!run.plan || static_cast<std::size_t>(rank) >= run.plan->held_bytes.size()) continue;
    for (auto& [time, bytes] : samples) bytes += run.plan->held_bytes[static_cast<std::size_t>(rank)];
  }
  if (!text.empty()) {
    Trace predicted = trace_from(parse_json(text, run.plan->file.string()));
    predicted.shift_to_zero();
    measured = measured.first_events_of(predicted);
    traces.emplace_back("predicted", std::move(predicted));
  } else if (!why.empty()) {
    section.paragraphs.push_back("What was predicted of its pipeline is not drawn: " + why + ".");
  }
  traces.emplace_back("measured", std::move(measured));
  section.figures.push_back(pipeline_figure(traces));
  const auto limit = run.plan ? run.plan->memory_bytes : std::nullopt;
  if (Figure memory = memory_figure(traces, limit); !memory.html.empty()) section.figures.push_back(std::move(memory));
}

void add_changes(const TrainingRun& run, Section& section) {
  if (run.changes.empty()) return;
  Table table{{"the run went over to another plan as", "planned beside training / ms", "predicted / ms", "took / ms"},
              {}};
  ScatterChart chart;
  for (const TrainingRun::Change& change : run.changes) {
    table.rows.push_back({change.what, number_text(1e3 * change.planning_seconds),
                          number_text(1e3 * change.predicted_seconds), number_text(1e3 * change.measured_seconds)});
    chart.marks.push_back({change.what, 1e3 * change.measured_seconds, 1e3 * change.predicted_seconds});
  }
  chart.x = {"measured without training / ms", true};
  chart.y = {"predicted / ms", true};
  chart.groups = {"a change"};
  chart.band = 0.5;
  chart.what =
      fmt::format("The run went over to another plan {} time{}; what that took is held against its prediction.",
                  run.changes.size(), run.changes.size() == 1 ? "" : "s");
  section.figures.push_back({chart.what, to_html(chart), table});
}

}  // namespace

Section run_section(const TrainingRun& run, const ReportTools& tools) {
  Section section{"Training run: " + run.folder.filename().string(), run.folder.string()};
  std::string told = fmt::format("It is {}.", run.state);
  if (run.plan)
    told += fmt::format(" {} on {} ({}), {} rank{}.", run.plan->policy, run.plan->backbone, run.plan->deployment,
                        run.plan->ranks, run.plan->ranks == 1 ? "" : "s");
  section.paragraphs.push_back(std::move(told));
  section.table = task_table(run);
  add_losses(run, section);
  add_pipelines(run, tools, section);
  add_changes(run, section);
  return section;
}

}  // namespace braid::report
