#include "cli/commands/operator_comparison.h"

#include <algorithm>
#include <array>

#include <fmt/core.h>

#include "planner/program/load.h"
#include "planner/window/predict.h"

namespace braid::cli {
namespace {

using costmodel::Operator;
using costmodel::Pass;

constexpr std::size_t kPasses = 3;
static_assert(static_cast<std::size_t>(Pass::parameters) + 1 == kPasses);
constexpr std::size_t kKinds = costmodel::kOperatorCount * kPasses;

std::size_t kind_of(const costmodel::OperatorCall& call) {
  return static_cast<std::size_t>(call.op) * kPasses + static_cast<std::size_t>(call.pass);
}

/// By kind.
std::array<double, kKinds> predicted_seconds(const planner::Plan& plan, std::span<const exec::RecordedWindow> windows) {
  const costmodel::CostModel cost(plan.profile);
  const planner::PassStyle style = planner::pass_style(plan.fixed, plan.workload);
  std::array<double, kKinds> predicted{};
  for (const exec::RecordedWindow& window : windows) {
    planner::ProgramLoads loads(window.program, style.adapters, style.kernels);
    for (const planner::StageProgram& stage : window.program.stages) {
      for (const planner::Instruction& instruction : stage.instructions) {
        const bool forward = instruction.kind == planner::Kind::forward;
        if (!forward && instruction.kind != planner::Kind::backward) continue;
        for (const planner::Part& part : stage.parts_of(instruction)) {
          for (const costmodel::OperatorCall& call : costmodel::stage_operators(
                   plan.workload.backbone, planner::shape_of(stage, part), loads.of(part.microbatch),
                   forward ? Pass::forward : Pass::backward, cost.storage()))
            predicted[kind_of(call)] += cost.estimate(call).seconds;
        }
      }
    }
  }
  return predicted;
}

}  // namespace

std::vector<Compared> compare_operators(const planner::Plan& plan, std::span<const exec::RecordedWindow> windows,
                                        std::span<const exec::Probe::Record> records,
                                        exec::Communicator& communicator) {
  std::vector<double> measured(2 * kKinds, 0);  // seconds and calls, by kind
  for (const exec::Probe::Record& record : records) {
    measured[2 * kind_of(record.call)] += record.seconds;
    measured[2 * kind_of(record.call) + 1] += 1;
  }
  communicator.sum(measured);
  if (communicator.rank() != 0) return {};
  const std::array<double, kKinds> predicted = predicted_seconds(plan, windows);
  std::vector<Compared> operators;
  for (std::size_t kind = 0; kind < kKinds; ++kind) {
    if (predicted[kind] == 0) continue;
    operators.push_back(
        {fmt::format("{} {}", name(static_cast<Operator>(kind / kPasses)), name(static_cast<Pass>(kind % kPasses))),
         predicted[kind], measured[2 * kind], static_cast<std::int64_t>(measured[2 * kind + 1])});
  }
  std::stable_sort(operators.begin(), operators.end(),
                   [](const Compared& left, const Compared& right) { return left.measured > right.measured; });
  return operators;
}

}  // namespace braid::cli
