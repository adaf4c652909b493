#include "planner/latency/durations.h"

#include <algorithm>
#include <array>

#include "planner/latency/weight_gathers.h"
#include "planner/program/load.h"

namespace braid::planner {
namespace {

using costmodel::Estimate;
using costmodel::Operator;
using costmodel::Pass;

/// Of what layers are worth, not of what is done again.
costmodel::StageShape without_recomputation(const StageProgram& stage) {
  costmodel::StageShape shape = shape_of(stage);
  shape.recompute = {};
  return shape;
}

class InstructionCosts {
 public:
  InstructionCosts(const Program& program, const PassStyle& style, ClockLatency& latency)
      : program_(program),
        style_(style),
        latency_(latency),
        cost_(latency.cost()),
        loads_(program, style.adapters, style.kernels) {
    if (style.gathers_weights) gathers_ = gathers();
  }

  PassTime of(const StageProgram& stage, const Instruction& instruction) {
    if (instruction.kind == Kind::forward) return compute(stage, instruction, Pass::forward);
    if (instruction.kind == Kind::backward) return compute(stage, instruction, Pass::backward);
    return {other(stage, instruction), 0};
  }

 private:
  Estimate other(const StageProgram& stage, const Instruction& instruction) const {
    switch (instruction.kind) {
      case Kind::send_activation:
      case Kind::send_gradient:
        return message(instruction);
      case Kind::sync_adapter:
        return meeting(instruction);
      case Kind::reduce_norm: {
        Estimate estimate = one(Operator::squared_norm, {}, parameters(stage, instruction.task));
        estimate += meeting(instruction);
        return estimate;
      }
      case Kind::step:
        return one(Operator::adamw, {}, parameters(stage, instruction.task));
      default:
        return {};
    }
  }

  Estimate one(Operator op, costmodel::OperatorShape shape, std::int64_t amount) const {
    return amount > 0 ? cost_.estimate({op, Pass::forward, shape, amount, 0, 0, 1}) : Estimate{};
  }

  std::int64_t parameters(const StageProgram& stage, TaskIndex task) const {
    return stage.layer_count() * style_.adapters[static_cast<std::size_t>(task)].layer_parameters(latency_.backbone());
  }

  const std::vector<std::int32_t>& ranks_of(StageIndex stage) const {
    return program_.stages[static_cast<std::size_t>(stage)].ranks;
  }

  Estimate message(const Instruction& instruction) const {
    const Channel& channel = program_.channels[static_cast<std::size_t>(instruction.channel)];
    const std::array ranks = {ranks_of(channel.from).front(), ranks_of(channel.to).front()};
    return one(Operator::send_recv, cost_.group_shape(Operator::send_recv, ranks), instruction.bytes);
  }

  /// A group of one rank meets nobody.
  Estimate meeting(const Instruction& instruction) const {
    std::vector<std::int32_t> ranks;
    for (const StageIndex stage : program_.groups[static_cast<std::size_t>(instruction.group)].stages)
      ranks.insert(ranks.end(), ranks_of(stage).begin(), ranks_of(stage).end());
    if (ranks.size() <= 1) return {};
    return one(Operator::all_reduce, cost_.group_shape(Operator::all_reduce, ranks), instruction.bytes);
  }

  PassTime compute(const StageProgram& stage, const Instruction& instruction, Pass pass) {
    const std::span<const Part> parts = stage.parts_of(instruction);
    together_.clear();
    if (parts.size() > 1) {
      for (const Part& part : parts) together_.push_back(loads_.of(part.microbatch));
    }
    const std::span<const costmodel::MicrobatchLoad> loads =
        parts.size() == 1 ? std::span(&loads_.of(parts[0].microbatch), 1)
                          : std::span<const costmodel::MicrobatchLoad>(together_);
    const costmodel::StageShape shape = shape_of(stage, parts.front());
    const PassTime computed = latency_.estimate(shape, stage.ranks, loads, pass, style_.launch_rule);
    return style_.gathers_weights ? with_gathers(computed, shape, stage.ranks, loads, pass) : computed;
  }

  PassTime with_gathers(const PassTime& computed, const costmodel::StageShape& shape,
                        std::span<const std::int32_t> ranks, std::span<const costmodel::MicrobatchLoad> loads,
                        Pass pass) {
    costmodel::StageShape below_head = shape;
    below_head.has_head = false;
    const double seconds = computed.total.seconds;
    double head = 0;
    if (pass == Pass::forward)
      head =
          std::max(0.0, seconds - latency_.estimate(below_head, ranks, loads, pass, style_.launch_rule).total.seconds);
    const double stalled = gathered_seconds(seconds, head, shape.layers, gathers_, pass) - seconds;
    PassTime waited = computed;
    waited += {{stalled, stalled}, stalled};
    return waited;
  }

  WeightGathers gathers() const {
    std::vector<std::int32_t> ranks;
    for (const StageProgram& stage : program_.stages) ranks.insert(ranks.end(), stage.ranks.begin(), stage.ranks.end());
    return weight_gathers(shape_of(program_.stages.front()), ranks, cost_, latency_.backbone());
  }

  const Program& program_;
  const PassStyle& style_;
  ClockLatency& latency_;
  const costmodel::CostModel& cost_;
  ProgramLoads loads_;
  WeightGathers gathers_;
  std::vector<costmodel::MicrobatchLoad> together_;
};

}  // namespace

PredictedDurations predict_durations(const Program& program, const PassStyle& style, ClockLatency& latency) {
  PredictedDurations predicted;
  InstructionCosts costs(program, style, latency);
  for (const StageProgram& stage : program.stages) {
    std::vector<Nanoseconds>& durations = predicted.durations.stages.emplace_back();
    std::vector<Nanoseconds>& stalled = predicted.stalled.stages.emplace_back();
    durations.reserve(stage.instructions.size());
    stalled.reserve(stage.instructions.size());
    for (const Instruction& instruction : stage.instructions) {
      const PassTime time = costs.of(stage, instruction);
      predicted.total += time.total;
      durations.push_back(nanoseconds(time.total.seconds));
      stalled.push_back(std::min(nanoseconds(time.stalled_seconds), durations.back()));
    }
  }
  return predicted;
}

double backbone_flops(const Program& program, std::span<const Microbatch> microbatches,
                      const costmodel::BackboneShape& backbone, std::span<const costmodel::AdapterShape> adapters) {
  // Passes of like stages are alike: asked for once a microbatch and shape.
  std::vector<std::pair<costmodel::StageShape, double>> shapes;
  for (const StageProgram& stage : program.stages) {
    const costmodel::StageShape shape = without_recomputation(stage);
    const auto known = std::find_if(shapes.begin(), shapes.end(), [&](const auto& one) { return one.first == shape; });
    if (known == shapes.end()) shapes.emplace_back(shape, 0);
  }
  double flops = 0;
  for (const Microbatch& microbatch : microbatches) {
    const costmodel::MicrobatchLoad load = load_of(microbatch, adapters);
    for (auto& [shape, of_shape] : shapes) {
      of_shape = 0;
      for (const Pass pass : {Pass::forward, Pass::backward})
        of_shape += costmodel::backbone_flops(
            costmodel::stage_operators(backbone, shape, load, pass, costmodel::cpu_storage()));
    }
    for (const StageProgram& stage : program.stages) {
      if (stage.replica != microbatch.replica) continue;
      const costmodel::StageShape shape = without_recomputation(stage);
      const auto known =
          std::find_if(shapes.begin(), shapes.end(), [&](const auto& one) { return one.first == shape; });
      flops += static_cast<double>(stage.ranks.size()) * known->second;
    }
  }
  return flops;
}

}  // namespace braid::planner
