#include "planner/program/excerpt.h"

#include <algorithm>
#include <set>
#include <tuple>

#include "base/error.h"

namespace braid::planner {
namespace {

/// The first that a replica's first stage sends forward, in its order.
void keep_first(const StageProgram& stage, std::size_t count, std::set<MicrobatchId>& kept) {
  std::set<MicrobatchId> here;
  for (const Instruction& instruction : stage.instructions) {
    if (instruction.kind != Kind::forward) continue;
    for (const Part& part : stage.parts_of(instruction)) {
      if (here.size() < count) here.insert(part.microbatch);
    }
  }
  kept.merge(here);
}

/// The way back of a chunk needs what the later chunks of its sample leave behind.
void keep_whole_samples(const Program& program, std::set<MicrobatchId>& kept) {
  using Sample = std::tuple<TaskIndex, std::int64_t, std::int32_t>;
  std::set<Sample> samples;
  for (std::size_t before = 0; before != kept.size();) {
    before = kept.size();
    for (const MicrobatchId id : kept) {
      for (const Segment& segment : program.microbatch(id).segments)
        samples.emplace(segment.task, segment.global_batch, segment.index);
    }
    for (const Microbatch& microbatch : program.microbatches) {
      const bool shares =
          std::any_of(microbatch.segments.begin(), microbatch.segments.end(), [&](const Segment& segment) {
            return samples.contains(Sample(segment.task, segment.global_batch, segment.index));
          });
      if (shares) kept.insert(microbatch.id);
    }
  }
}

/// What of one stage's list stays.
StageProgram excerpt_of(const StageProgram& whole, const std::set<MicrobatchId>& kept,
                        const std::set<std::pair<TaskIndex, std::int64_t>>& steps) {
  StageProgram stage = whole;
  stage.instructions.clear();
  stage.waits.clear();
  stage.parts.clear();
  std::vector<InstructionId> ids;  // per instruction of the whole; below first_id: it does not stay
  for (const Instruction& instruction : whole.instructions) {
    std::vector<Part> parts;
    for (const Part& part : whole.parts_of(instruction)) {
      if (kept.contains(part.microbatch)) parts.push_back(part);
    }
    const bool passes = instruction.kind == Kind::forward || instruction.kind == Kind::backward;
    const bool stays = passes                            ? !parts.empty()
                       : instruction.microbatch != kNone ? kept.contains(instruction.microbatch)
                       : instruction.task != kNone       ? steps.contains({instruction.task, instruction.global_batch})
                                                         : true;
    std::vector<InstructionId> waits;
    for (const InstructionId id : whole.waits_of(instruction)) {
      const InstructionId now = ids[static_cast<std::size_t>(id - whole.first_id)];
      if (now >= whole.first_id) waits.push_back(now);
    }
    ids.push_back(stays ? stage.append(instruction, waits, parts) : whole.first_id - 1);
  }
  return stage;
}

}  // namespace

Program excerpt(const Program& whole, std::int64_t microbatches) {
  BRAID_CHECK(is_empty(whole.before) && is_empty(whole.after), "only a Program by itself has an excerpt");
  std::set<MicrobatchId> kept;
  for (const StageProgram& stage : whole.stages) {
    if (stage.stage == 0) keep_first(stage, static_cast<std::size_t>(microbatches), kept);
  }
  keep_whole_samples(whole, kept);
  std::set<std::pair<TaskIndex, std::int64_t>> steps;
  Program program = whole;
  std::erase_if(program.microbatches, [&](const Microbatch& microbatch) { return !kept.contains(microbatch.id); });
  for (const Microbatch& microbatch : program.microbatches) {
    for (const Segment& segment : microbatch.segments) steps.emplace(segment.task, segment.global_batch);
  }
  for (StageProgram& stage : program.stages) stage = excerpt_of(stage, kept, steps);
  return program;
}

}  // namespace braid::planner
