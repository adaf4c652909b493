#include "planner/program/program.h"

#include <algorithm>
#include <array>

#include "base/error.h"

namespace braid::planner {

std::int64_t Microbatch::computed_tokens() const {
  std::int64_t tokens = 0;
  for (const Segment& segment : segments) tokens += segment.computed_tokens();
  return tokens;
}

std::string_view name(Kind kind) {
  constexpr std::array<std::string_view, kKindCount> kNames = {"Forward",      "Backward",       "SendActivation",
                                                               "SendGradient", "RecvActivation", "RecvGradient",
                                                               "SyncAdapter",  "ReduceNorm",     "Step"};
  return kNames[static_cast<std::size_t>(kind)];
}

std::string_view name(Stream stream) {
  constexpr std::array<std::string_view, kStreamCount> kNames = {"compute", "send", "recv", "sync"};
  return kNames[static_cast<std::size_t>(stream)];
}

InstructionId StageProgram::append(Instruction instruction, std::span<const InstructionId> waited,
                                   std::span<const Part> computed) {
  const InstructionId id = first_id + static_cast<InstructionId>(instructions.size());
  instruction.waits = {static_cast<std::uint32_t>(waits.size()), static_cast<std::uint32_t>(waited.size())};
  instruction.parts = {static_cast<std::uint32_t>(parts.size()), static_cast<std::uint32_t>(computed.size())};
  for (const InstructionId earlier : waited) {
    BRAID_CHECK(earlier < id, "instruction {} would wait for {}", id, earlier);
    waits.push_back(earlier);
  }
  parts.insert(parts.end(), computed.begin(), computed.end());
  instructions.push_back(instruction);
  return id;
}

std::int64_t StageProgram::layer_count() const {
  std::int64_t count = 0;
  for (const LayerRange& range : layers) count += range.count();
  return count;
}

bool StageProgram::holds(LayerRange range) const {
  return std::any_of(layers.begin(), layers.end(),
                     [&](const LayerRange& mine) { return mine.first <= range.first && range.last <= mine.last; });
}

std::string describe(const StageProgram& stage) {
  return fmt::format("replica {} stage {}", stage.replica, stage.stage);
}

const Microbatch& Program::microbatch(MicrobatchId id) const {
  const auto found =
      std::lower_bound(microbatches.begin(), microbatches.end(), id,
                       [](const Microbatch& microbatch, MicrobatchId key) { return microbatch.id < key; });
  BRAID_CHECK(found != microbatches.end() && found->id == id, "no microbatch {}", id);
  return *found;
}

std::size_t Program::instruction_count() const {
  std::size_t count = 0;
  for (const StageProgram& stage : stages) count += stage.instructions.size();
  return count;
}

Awaited describe_awaited(const StageProgram& stage, std::size_t position) {
  const Instruction& instruction = stage.instructions[position];
  Awaited awaited;
  awaited.id = stage.first_id + static_cast<InstructionId>(position);
  awaited.kind = instruction.kind;
  for (const Part& part : stage.parts_of(instruction)) awaited.microbatches.push_back(part.microbatch);
  if (instruction.microbatch != kNone) awaited.microbatches.push_back(instruction.microbatch);
  awaited.channel = instruction.channel;
  awaited.task = instruction.task;
  awaited.global_batch = instruction.global_batch;
  awaited.layers = instruction.layers;
  return awaited;
}

const Awaited* find_awaited(const StageBoundary& boundary, InstructionId id) {
  const auto found = std::lower_bound(boundary.awaited.begin(), boundary.awaited.end(), id,
                                      [](const Awaited& awaited, InstructionId key) { return awaited.id < key; });
  return found != boundary.awaited.end() && found->id == id ? &*found : nullptr;
}

Boundary empty_boundary(const Program& program) {
  Boundary boundary;
  boundary.stages.resize(program.stages.size());
  for (StageBoundary& stage : boundary.stages) stage.next_batch.assign(static_cast<std::size_t>(program.task_count), 0);
  boundary.messages.resize(program.channels.size());
  return boundary;
}

bool is_empty(const Boundary& boundary) {
  return std::all_of(boundary.stages.begin(), boundary.stages.end(),
                     [](const StageBoundary& stage) {
                       return stage.live.empty() && stage.gradients.empty() && stage.keys.empty() &&
                              stage.awaited.empty();
                     }) &&
         std::all_of(boundary.messages.begin(), boundary.messages.end(),
                     [](const std::vector<MicrobatchId>& messages) { return messages.empty(); });
}

}  // namespace braid::planner
