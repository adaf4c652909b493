#include "planner/muxtune/clock_sketch.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace braid::planner {

using costmodel::MicrobatchLoad;
using costmodel::Pass;

ClockSketch::ClockSketch(const PolicyInput& input, std::span<const costmodel::StageShape> stages,
                         std::span<const MicrobatchLoad> loads, const RunCosts& costs)
    : input_(input),
      stages_(stages),
      costs_(costs),
      tokens_before_{0},
      scored_before_{0},
      ranks_(static_cast<std::size_t>(input.deployment.front().tp)) {
  std::iota(ranks_.begin(), ranks_.end(), 0);
  for (const costmodel::StageShape& stage : stages)
    first_alike_.push_back(static_cast<std::size_t>(std::find(stages.begin(), stages.end(), stage) - stages.begin()));
  for (const MicrobatchLoad& load : loads) {
    tokens_before_.push_back(tokens_before_.back() + load.tokens);
    scored_before_.push_back(scored_before_.back() + load.scored);
  }
  slowdown_ = input.cost().overlap_slowdown();
}

std::int64_t ClockSketch::clocks_of(std::vector<TaskRun>& runs) const {
  const auto more = [&](const TaskRun& a, const TaskRun& b) { return costs_.microbatches(a) > costs_.microbatches(b); };
  if (!std::is_sorted(runs.begin(), runs.end(), more)) std::stable_sort(runs.begin(), runs.end(), more);
  return costs_.microbatches(runs.front());
}

double ClockSketch::seconds(std::size_t stage, std::span<const TaskRun> runs, Pass pass) {
  if (runs.size() == 1) return together(stage, runs, pass);
  double total = 0;
  const std::int64_t clocks = costs_.microbatches(runs.front());
  for (std::int64_t done = 0; done < clocks;) {
    const std::int64_t until = costs_.microbatches(runs.back());
    total += static_cast<double>(until - done) * together(stage, runs, pass);
    done = until;
    while (!runs.empty() && costs_.microbatches(runs.back()) == until) runs = runs.first(runs.size() - 1);
  }
  return total / static_cast<double>(clocks);
}

/// One microbatch of each: collectives run beside the others' computation (which they slow down), as much of each as
/// the others have, but for the first or last subgraph of the least, of which a layer has two, and two more where
/// Backward computes it again.
double ClockSketch::together(std::size_t stage, std::span<const TaskRun> runs, Pass pass) {
  double compute = 0, communication = 0;
  double least_compute = std::numeric_limits<double>::max(), least_communication = least_compute;
  double most_both = 0;  // of one hTask
  for (const TaskRun& run : runs) {
    const double mine =
        pass == Pass::forward ? costs_.forward_seconds(stage, run) : costs_.backward_seconds(stage, run);
    const double sent = collective_seconds(stage, run, pass);
    compute += mine, communication += sent;
    least_compute = std::min(least_compute, mine);
    least_communication = std::min(least_communication, sent);
    most_both = std::max(most_both, mine + sent);
  }
  if (runs.size() == 1) return compute + communication;
  const costmodel::Recompute& recompute = stages_[stage].recompute;
  const bool again = pass == Pass::backward && recompute.kind == costmodel::RecomputeKind::full;
  const std::int64_t layers = stages_[stage].layers + (again ? std::min(recompute.layers, stages_[stage].layers) : 0);
  const double subgraphs = 2 * static_cast<double>(std::max<std::int64_t>(layers, 1));
  const double exposed = std::max(most_both - compute, least_communication / subgraphs);
  const double slowed = (1 - 1 / slowdown_) * std::max(0.0, communication - exposed);
  return std::max(compute + slowed + exposed, communication + least_compute / subgraphs);
}

double ClockSketch::collective_seconds(std::size_t stage, const TaskRun& run, Pass pass) {
  if (stages_[stage].tp == 1) return 0;
  const auto share = [&](const std::vector<std::int64_t>& before) {
    const std::int64_t whole =
        before[static_cast<std::size_t>(run.last) + 1] - before[static_cast<std::size_t>(run.first)];
    return static_cast<std::int64_t>(std::llround(static_cast<double>(whole) / costs_.cut(run)));
  };
  MicrobatchLoad load;
  load.tokens = std::max<std::int64_t>(1, share(tokens_before_));
  load.scored = share(scored_before_);
  const auto [known, is_new] = collectives_.try_emplace({first_alike_[stage], load.tokens, load.scored, pass});
  if (is_new) known->second = input_.latency.collectives(stages_[stage], ranks_, load, pass).seconds;
  return known->second;
}

}  // namespace braid::planner
