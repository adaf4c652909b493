// What a Program's end of a global batch asks of a rank: its adapter synchronized, its norm gathered, the Step taken.
#include <cmath>
#include <numeric>
#include <utility>

#include "exec/execution.h"
#include "exec/optimizer.h"

namespace braid::exec {

using planner::Instruction;
using planner::InstructionId;
using planner::Kind;
using planner::TaskIndex;

void Runner::Execution::sync_adapter(InstructionId id, const Instruction& instruction) {
  Adapter& adapter = *runner_.adapters_[static_cast<std::size_t>(instruction.task)];
  CommunicatorGroup& group = *runner_.groups_[static_cast<std::size_t>(instruction.group)];
  if (adapter.has_exact_sums()) {
    GatheredSums& sums = sums_[instruction.task].emplace_back(instruction.layers, adapter.sums(instruction.layers),
                                                              ranks_of(instruction.group));
    streams_.start_by_host(id, [&sums, &group](const kernels::Event&) { return sums.start(group); });
    return;
  }
  streams_.start(id, [&group, gradients = adapter.gradients(instruction.layers)](const kernels::Event& after) {
    return group.all_reduce(numbers_of(gradients.span()), after);
  });
}

std::size_t Runner::Execution::ranks_of(planner::GroupIndex group) const {
  std::size_t ranks = 0;
  for (const planner::StageIndex stage : program_->groups[static_cast<std::size_t>(group)].stages)
    ranks += program_->stages[static_cast<std::size_t>(stage)].ranks.size();
  return ranks;
}

void Runner::Execution::settle_sums(TaskIndex task) {
  Adapter& adapter = *runner_.adapters_[static_cast<std::size_t>(task)];
  if (!adapter.has_exact_sums()) return;
  for (const GatheredSums& sums : sums_[task]) adapter.set_sums(sums.layers(), sums.sum());
  sums_.erase(task);
  adapter.settle_sums();
}

void Runner::Execution::reduce_norm(InstructionId id, const Instruction& instruction) {
  settle_sums(instruction.task);
  GatheredNorms& norms = norms_[instruction.task];
  squared_norms(*runner_.adapters_[static_cast<std::size_t>(instruction.task)], runner_.pool_, norms.mine());
  norms.prepare(*program_, instruction.group, runner_.place_.shard == 0);
  CommunicatorGroup& group = *runner_.groups_[static_cast<std::size_t>(instruction.group)];
  streams_.start_by_host(id, [&norms, &group](const kernels::Event&) { return norms.start(group); });
}

void Runner::Execution::wait_for_device() {
  const std::unique_ptr<kernels::Event> now = device().record();
  while (!now->ended()) streams_.wait_a_little();
  for (const auto& model : runner_.models_) model->settle_losses();
}

std::size_t Runner::Execution::count_together(std::size_t place) const {
  std::size_t count = 1;
  if (stage_->instructions[place].kind != Kind::step || device().host_memory()) return count;
  std::set<TaskIndex> tasks = {stage_->instructions[place].task};
  while (place + count < stage_->instructions.size() && stage_->instructions[place + count].kind == Kind::step &&
         tasks.insert(stage_->instructions[place + count].task).second)
    ++count;
  return count;
}

void Runner::Execution::step(std::span<const Instruction> instructions) {
  std::vector<std::vector<double>> norms(instructions.size());
  std::vector<NormsOf> norms_of_tasks;
  for (const Instruction& instruction : instructions) settle_sums(instruction.task);
  for (std::size_t i = 0; i < instructions.size(); ++i)
    norms_of_tasks.push_back({&adapter_of(instructions[i]), &norms[i]});
  squared_norms(norms_of_tasks, runner_.pool_);
  wait_for_device();
  std::vector<StepOf> steps;
  for (std::size_t i = 0; i < instructions.size(); ++i) {
    if (const std::optional<double> scale = finish_batch(instructions[i], norms[i]))
      steps.push_back({&optimizer_of(instructions[i]), instructions[i].global_batch,
                       runner_.input_.samples.steps(instructions[i].task), *scale, &adapter_of(instructions[i])});
  }
  if (steps.empty()) return;
  double all = 0;
  for (const StepOf& step : steps) all += static_cast<double>(step.adapter->parameters().size());
  const std::shared_ptr<kernels::Event> begun = runner_.probe_.mark();
  take_steps(steps, kernels());
  const std::shared_ptr<kernels::Event> ended = runner_.probe_.mark();
  for (const StepOf& step : steps) {
    const auto numbers = static_cast<std::int64_t>(step.adapter->parameters().size());
    runner_.probe_.hear({costmodel::Operator::adamw, costmodel::Pass::forward, {}, numbers, 0, 0, 1},
                        {{begun, ended, static_cast<double>(numbers) / all}});
  }
}

Adapter& Runner::Execution::adapter_of(const Instruction& instruction) const {
  return *runner_.adapters_[static_cast<std::size_t>(instruction.task)];
}

const workload::Optimizer& Runner::Execution::optimizer_of(const Instruction& instruction) const {
  return runner_.input_.workload.tasks[static_cast<std::size_t>(instruction.task)].optimizer;
}

std::optional<double> Runner::Execution::finish_batch(const Instruction& instruction,
                                                      std::span<const double> norms_here) {
  StepReport& report = steps_[{instruction.task, instruction.global_batch}];
  const BatchLoss loss = runner_.objectives_.finish(instruction.task, instruction.global_batch);
  if (runner_.place_.tells_of_losses()) report.loss = loss;
  report.squared_norms.assign(static_cast<std::size_t>(runner_.input_.workload.backbone.layers), 0);
  if (runner_.place_.tells_of_layers())
    for (std::size_t i = 0; i < norms_here.size(); ++i)
      report.squared_norms[static_cast<std::size_t>(adapter_of(instruction).layers().numbers()[i])] = norms_here[i];
  const double local = std::accumulate(norms_here.begin(), norms_here.end(), 0.0);
  double scale = 1;
  bool finite = std::isfinite(loss.loss) && std::isfinite(local);
  if (const auto norms = norms_.find(instruction.task); norms != norms_.end()) {
    const double sum = norms->second.sum();
    scale = clip_scale(std::sqrt(sum), optimizer_of(instruction).max_grad_norm);
    finite = finite && std::isfinite(sum);
    norms_.erase(norms);
  }
  if (!finite) stopped_.insert(instruction.task);
  report.diverged = stopped_.contains(instruction.task);
  return report.diverged ? std::nullopt : std::optional(scale);
}

}  // namespace braid::exec
