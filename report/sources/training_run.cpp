#include "report/sources/training_run.h"

#include <algorithm>
#include <cmath>
#include <sstream>

#include "base/file.h"

namespace braid::report {
namespace {

namespace fs = std::filesystem;

/// The objects of a file of JSON lines.
std::vector<Node> json_lines(const fs::path& file) {
  std::vector<Node> lines;
  if (!fs::exists(file)) return lines;
  std::istringstream text(read_file(file));
  int number = 0;
  for (std::string line; std::getline(text, line);) {
    ++number;
    const bool whole = !text.eof();
    if (line.empty()) continue;
    try {
      lines.push_back(parse_json(line, file.string() + ":" + std::to_string(number)));
    } catch (const Error&) {
      if (whole) throw;
    }
  }
  return lines;
}

double number_or_nan(const Node& node, std::string_view key) {
  return node.number_or(key, std::nan(""));
}

void read_metrics(TrainingRun& run) {
  for (const Node& line : json_lines(run.folder / "metrics.jsonl")) {
    const std::string name = line.string_at("task");
    auto task = std::ranges::find(run.tasks, name, &TrainingRun::Task::name);
    if (task == run.tasks.end()) task = run.tasks.insert(run.tasks.end(), {name, ""});
    const std::int64_t step = line.integer_at("step");
    if (line.find("eval_loss")) {
      task->evaluations.push_back({step, number_or_nan(line, "eval_loss")});
      continue;
    }
    task->steps.push_back(
        {step, number_or_nan(line, "loss"), line.number_or("tokens", 0), line.number_or("seconds", 0)});
    if (line.find("reward_accuracy")) task->steps.back().reward_accuracy = number_or_nan(line, "reward_accuracy");
  }
}

}  // namespace

bool is_training_run(const fs::path& folder) {
  return fs::exists(folder / "status.json") && fs::exists(folder / "metrics.jsonl");
}

TrainingRun read_training_run(const fs::path& folder) {
  TrainingRun run{folder};
  const Node status = parse_json(read_file(folder / "status.json"), (folder / "status.json").string());
  run.state = status.string_at("state");
  for (const Node& task : status.at("tasks").sequence("tasks"))
    run.tasks.push_back(
        {task.string_at("task"), task.string_at("state"), task.integer_at("step"), task.integer_at("steps")});
  read_metrics(run);
  for (const Node& line : json_lines(folder / "changes.jsonl")) {
    std::string what;
    for (const Node& one : line.at("what").sequence("what")) what += (what.empty() ? "" : ", ") + one.as_string("what");
    run.changes.push_back({what, line.number_or("planning_seconds", 0), line.number_or("predicted_seconds", 0),
                           line.number_or("measured_seconds", 0)});
  }
  if (const fs::path file = folder / "plan.json"; fs::exists(file))
    run.plan = plan_summary_from(parse_json(read_file(file), file.string()), file);
  if (const fs::path file = folder / "timeline.json"; fs::exists(file))
    run.trace = trace_from(parse_json(read_file(file), file.string()));
  return run;
}

}  // namespace braid::report
