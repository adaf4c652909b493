#include "exec/execution.h"

#include <algorithm>
#include <utility>

namespace braid::exec {

using planner::Instruction;
using planner::InstructionId;
using planner::Kind;
using planner::MicrobatchId;

namespace {

LayerRuns runs_of(const planner::Part& part) {
  return {static_cast<std::size_t>(part.first_subgraph), static_cast<std::size_t>(part.last_subgraph)};
}

}  // namespace

Runner::Execution::Execution(Runner& runner, const planner::Program& program)
    : runner_(runner), streams_(runner.device(), *runner.communicator_, runner.zero_) {
  held_.assign(program.channels.size(), 0);
}

RunReport Runner::Execution::run(const planner::Program& program, std::span<const std::int64_t> ahead,
                                 const planner::StageTurns& turns) {
  begin(program, ahead);
  streams_.set_patience(runner_.patience_);
  turns_ = &turns;
  runner_.probe_.between = [this] { streams_.poll(); };
  for (std::size_t c = 0; c < channels_.size(); ++c) post_receives(c);
  for (std::size_t i = 0; i < stage_->instructions.size(); i += count_together(i)) execute(i);
  for (std::size_t c = 0; c < channels_.size(); ++c) post_all_receives(c);
  streams_.poll();
  if (planner::is_empty(program.after)) streams_.drain();
  runner_.probe_.between = nullptr;
  return {streams_.take_events(runner_.stage()), streams_.take_memory(), std::exchange(steps_, {})};
}

void Runner::Execution::begin(const planner::Program& program, std::span<const std::int64_t> ahead) {
  program_ = &program;
  stage_ = &program.stages[static_cast<std::size_t>(runner_.stage())];
  ahead_.assign(ahead.begin(), ahead.end());
  streams_.begin(*stage_);
  channels_.assign(program.channels.size(), {});
  for (std::size_t i = 0; i < stage_->instructions.size(); ++i) {
    const Instruction& instruction = stage_->instructions[i];
    if (planner::is_recv(instruction.kind))
      channels_[static_cast<std::size_t>(instruction.channel)].places.push_back(i);
  }
}

std::int64_t Runner::Execution::numbers(const Instruction& instruction) const {
  return instruction.bytes / costmodel::bytes_of(device().activations());
}

int Runner::Execution::peer(const Instruction& instruction) const {
  const planner::Channel& channel = program_->channels[static_cast<std::size_t>(instruction.channel)];
  const planner::StageIndex other = planner::is_send(instruction.kind) ? channel.to : channel.from;
  return program_->stages[static_cast<std::size_t>(other)].ranks[static_cast<std::size_t>(runner_.place_.shard)];
}

void Runner::Execution::post_receives(std::size_t channel) {
  while (channels_[channel].posted < channels_[channel].places.size() &&
         held_[channel] < std::max<std::int64_t>(ahead_[channel], 1))
    post_next_receive(channel);
}

void Runner::Execution::post_all_receives(std::size_t channel) {
  while (channels_[channel].posted < channels_[channel].places.size()) post_next_receive(channel);
}

void Runner::Execution::post_next_receive(std::size_t channel) {
  ChannelReceives& receives = channels_[channel];
  const std::size_t place = receives.places[receives.posted++];
  const Instruction& instruction = stage_->instructions[place];
  ++held_[channel];
  Arrival& arrival = arrivals_[id_of(place)];
  arrival = {runner_.pool_.take(numbers(instruction)), instruction.microbatch, instruction.channel};
  streams_.start(id_of(place),
                 [this, numbers = arrival.buffer.numbers(), from = peer(instruction), channel = instruction.channel](
                     const kernels::Event& after) { return communicator().receive(numbers, from, channel, after); });
}

void Runner::Execution::execute(std::size_t place) {
  const Instruction& instruction = stage_->instructions[place];
  streams_.came_on();
  if (planner::is_recv(instruction.kind)) return;  // posted ahead
  const std::span<const Instruction> together = std::span(stage_->instructions).subspan(place, count_together(place));
  for (const Instruction& one : together)
    for (const InstructionId id : stage_->waits_of(one)) streams_.wait_for(id);
  const std::shared_ptr<kernels::Event> begun = device().record();
  switch (instruction.kind) {
    case Kind::forward:
      forward(id_of(place), instruction);
      break;
    case Kind::backward:
      backward(id_of(place), instruction);
      break;
    case Kind::step:
      step(together);
      break;
    case Kind::send_activation:
    case Kind::send_gradient:
      send(id_of(place), instruction);
      return;
    case Kind::reduce_norm:
      reduce_norm(id_of(place), instruction);
      return;
    case Kind::sync_adapter:
      sync_adapter(id_of(place), instruction);
      return;
    case Kind::recv_activation:
    case Kind::recv_gradient:
      break;
  }
  const std::shared_ptr<kernels::Event> ended = device().record();
  for (std::size_t i = 0; i < together.size(); ++i)
    streams_.computing(id_of(place + i), begun, ended, runner_.pool_.in_use());
  streams_.poll();
}

Buffer Runner::Execution::take_input(const Instruction& instruction, MicrobatchId microbatch) {
  for (const InstructionId id : stage_->waits_of(instruction)) {
    const auto arrival = arrivals_.find(id);
    if (arrival == arrivals_.end() || arrival->second.microbatch != microbatch) continue;
    Buffer input = std::move(arrival->second.buffer);
    const auto channel = static_cast<std::size_t>(arrival->second.channel);
    arrivals_.erase(arrival);
    --held_[channel];
    post_receives(channel);
    return input;
  }
  return {};
}

StageModel& Runner::Execution::model_of(const planner::Microbatch& microbatch) {
  const auto copy = std::min(runner_.models_.size() - 1, static_cast<std::size_t>(microbatch.segments.front().task));
  return *runner_.models_[copy];
}

void Runner::Execution::forward(InstructionId id, const Instruction& instruction) {
  std::vector<Passing> passes;
  for (const planner::Part& part : stage_->parts_of(instruction)) {
    const planner::Microbatch& microbatch = program_->microbatch(part.microbatch);
    passes.push_back({microbatch.id, model_of(microbatch)
                                         .forward(microbatch.id, make_batch(microbatch, runner_.input_.datasets),
                                                  take_input(instruction, microbatch.id), runner_.adapters_,
                                                  runner_.seeds_, runner_.objectives_, runs_of(part))});
    if (!runner_.shards_) run(passes, {});
  }
  run(passes, turns_of(id));
}

void Runner::Execution::backward(InstructionId id, const Instruction& instruction) {
  std::vector<Passing> passes;
  for (const planner::Part& part : stage_->parts_of(instruction)) {
    const planner::Microbatch& microbatch = program_->microbatch(part.microbatch);
    passes.push_back({microbatch.id, model_of(microbatch)
                                         .backward(microbatch.id, take_input(instruction, microbatch.id),
                                                   runner_.adapters_, runner_.seeds_, runs_of(part))});
    if (!runner_.shards_) run(passes, {});
  }
  run(passes, turns_of(id));
}

std::span<const std::int32_t> Runner::Execution::turns_of(InstructionId id) const {
  const auto turns = turns_->find(id);
  return turns == turns_->end() ? std::span<const std::int32_t>() : turns->second;
}

void Runner::Execution::run(std::vector<Passing>& passes, std::span<const std::int32_t> turns) {
  for (const std::int32_t turn : turns) go_on(passes[static_cast<std::size_t>(turn)]);
  while (std::any_of(passes.begin(), passes.end(), [](const Passing& passing) { return !passing.ended; })) {
    for (Passing& passing : passes) go_on(passing);
  }
  passes.clear();
}

void Runner::Execution::go_on(Passing& passing) {
  if (passing.ended) return;
  if (kernels::Event* const event = passing.sum ? passing.sum->event() : nullptr) {
    device().follow(*event);
  } else {
    while (passing.summing && !(passing.sum && passing.sum->done())) streams_.wait_a_little();
  }
  passing.sum.reset();
  passing.summing = false;
  if (const std::optional<kernels::Matrix> partial = passing.pass->next()) {
    passing.summing = true;
    const auto meet = [this, &passing, sums = numbers_of(*partial)](const kernels::Event& ready) {
      passing.sum = runner_.shards_->all_reduce(sums, ready);
    };
    if (communicator().on_devices()) {
      meet(*device().record());
    } else {
      streams_.start_later(meet);
    }
    return;
  }
  results_[passing.microbatch] = passing.pass->take_result();
  passing.pass.reset();
  passing.ended = true;
}

void Runner::Execution::send(InstructionId id, const Instruction& instruction) {
  Buffer result = std::move(results_.extract(instruction.microbatch).mapped());
  const Numbers numbers = result.numbers();
  streams_.start(
      id,
      [this, numbers, to = peer(instruction), channel = instruction.channel](const kernels::Event& after) {
        return communicator().send(numbers, to, channel, after);
      },
      std::move(result));
}

}  // namespace braid::exec
