// The rules about what is computed: every sample once, in order, and Steps where the gate allows them.

#include <algorithm>
#include <map>
#include <set>

#include "base/error.h"
#include "planner/verify.h"

namespace braid::planner::detail {
namespace {

struct BatchKey {
  TaskIndex task = 0;
  std::int64_t global_batch = 0;
  auto operator<=>(const BatchKey&) const = default;
};

std::string describe(const BatchKey& key) {
  return fmt::format("task {} batch {}", key.task, key.global_batch);
}

std::string describe(const StageProgram& stage) {
  return fmt::format("replica {} stage {}", stage.replica, stage.stage);
}

/// Calls `visit(position, instruction, microbatch, last_subgraph_of_that_entry)` along the compute order.
template <typename Visit>
void along_compute(const Program& program, std::size_t s, const Visit& visit) {
  const StageProgram& stage = program.stages[s];
  for (std::size_t i = 0; i < stage.instructions.size(); ++i) {
    for (const Part& part : stage.parts_of(stage.instructions[i])) visit(i, stage.instructions[i], part);
  }
}

/// Per sample of a batch, the tokens that went through, as pieces [begin, end).
using Pieces = std::map<std::int32_t, std::vector<std::pair<std::int32_t, std::int32_t>>>;

bool tiles(std::vector<std::pair<std::int32_t, std::int32_t>> pieces, std::int32_t tokens) {
  std::sort(pieces.begin(), pieces.end());
  std::int32_t reached = 0;
  for (const auto& [begin, end] : pieces) {
    if (begin != reached || end <= begin) return false;
    reached = end;
  }
  return reached == tokens;
}

}  // namespace

void verify_order(const Program& program, std::vector<Violation>& violations) {
  for (std::size_t s = 0; s < program.stages.size(); ++s) {
    const StageProgram& stage = program.stages[s];
    std::set<MicrobatchId> live(program.before.stages[s].live.begin(), program.before.stages[s].live.end());
    std::set<MicrobatchId> seen = live;
    // Tokens of each sample that have gone forward and not yet backward: chunks stack up and come off the top.
    std::map<std::tuple<TaskIndex, std::int64_t, std::int32_t>, std::int32_t> reached;
    for (const MicrobatchId id : live) {
      for (const Segment& segment : program.microbatch(id).segments) {
        std::int32_t& tokens = reached[{segment.task, segment.global_batch, segment.index}];
        tokens = std::max(tokens, segment.end);
      }
    }
    along_compute(program, s, [&](std::size_t, const Instruction& instruction, const Part& part) {
      const MicrobatchId id = part.microbatch;
      const Microbatch& microbatch = program.microbatch(id);
      const bool forward = instruction.kind == Kind::forward;
      if (microbatch.replica != stage.replica) {
        violations.push_back({Rule::order, fmt::format("{} computes microbatch {} of replica {}", describe(stage), id,
                                                       microbatch.replica)});
      }
      if (part.first_subgraph > 0) return;
      if (forward && !seen.insert(id).second)
        violations.push_back({Rule::samples, fmt::format("{}: microbatch {} goes forward twice", describe(stage), id)});
      if (forward) live.insert(id);
      if (!forward && live.erase(id) == 0)
        violations.push_back(
            {Rule::order, fmt::format("{}: microbatch {} goes backward before it went forward", describe(stage), id)});
      for (const Segment& segment : microbatch.segments) {
        std::int32_t& tokens = reached[{segment.task, segment.global_batch, segment.index}];
        const std::int32_t expected = forward ? segment.begin : segment.end;
        if (tokens != expected && (segment.begin > 0 || tokens > 0)) {
          violations.push_back(
              {Rule::order, fmt::format("{}: chunk [{}, {}) of task {} batch {} sample {} goes {} out of turn",
                                        describe(stage), segment.begin, segment.end, segment.task, segment.global_batch,
                                        segment.index, forward ? "forward" : "backward")});
        }
        tokens = forward ? segment.end : segment.begin;
      }
    });
    const std::vector<MicrobatchId> left(live.begin(), live.end());
    if (left != program.after.stages[s].live) {
      violations.push_back(
          {Rule::boundary, fmt::format("{}: {} microbatches are under way at the end, the boundary has {}",
                                       describe(stage), left.size(), program.after.stages[s].live.size())});
    }
  }
}

void verify_samples(const Program& program, const VerifyContext& context, std::vector<Violation>& violations) {
  // A global batch is complete in this slice when its Step is here; then its samples, over all replicas, must be just
  // the expected ones, on every stage of the replica that has them.
  std::map<std::int32_t, std::vector<std::size_t>> stages_of_replica;
  for (std::size_t s = 0; s < program.stages.size(); ++s) stages_of_replica[program.stages[s].replica].push_back(s);
  std::map<BatchKey, std::map<std::int32_t, std::set<std::int32_t>>> by_replica;  // which samples each replica computed
  std::set<BatchKey> stepped;
  for (const auto& [replica, stages] : stages_of_replica) {
    for (const std::size_t s : stages) {
      std::map<BatchKey, Pieces> backward;
      std::map<BatchKey, std::set<std::int32_t>> earlier;
      for (const PartialGradient& partial : program.before.stages[s].gradients) {
        earlier[{partial.task, partial.global_batch}].insert(partial.indices.begin(), partial.indices.end());
      }
      along_compute(program, s, [&](std::size_t, const Instruction& instruction, const Part& part) {
        if (instruction.kind != Kind::backward || part.first_subgraph > 0) return;
        for (const Segment& segment : program.microbatch(part.microbatch).segments) {
          backward[{segment.task, segment.global_batch}][segment.index].emplace_back(segment.begin, segment.end);
        }
      });
      for (const Instruction& instruction : program.stages[s].instructions) {
        if (instruction.kind != Kind::step) continue;
        const BatchKey key{instruction.task, instruction.global_batch};
        stepped.insert(key);
        const std::vector<ExpectedSample> expected = context.expected(key.task, key.global_batch);
        std::set<std::int32_t>& mine = by_replica[key][replica];
        std::set<std::int32_t> here = earlier[key];
        for (const auto& [index, pieces] : backward[key]) {
          const auto place = static_cast<std::size_t>(index);
          const bool twice = here.contains(index) && !earlier[key].empty() && earlier[key].contains(index);
          if (index < 0 || place >= expected.size()) {
            violations.push_back({Rule::samples, fmt::format("{}: sample {} of {} does not exist",
                                                             describe(program.stages[s]), index, describe(key))});
          } else if (twice || !tiles(pieces, expected[place].tokens)) {
            violations.push_back({Rule::samples, fmt::format("{}: sample {} of {} is not computed exactly once",
                                                             describe(program.stages[s]), index, describe(key))});
          }
          here.insert(index);
        }
        if (s == stages.front()) mine = here;
        if (mine != here)
          violations.push_back({Rule::samples, fmt::format("{}: {} has other samples than on the stages before",
                                                           describe(program.stages[s]), describe(key))});
      }
    }
  }
  for (const BatchKey& key : stepped) {
    const std::vector<ExpectedSample> expected = context.expected(key.task, key.global_batch);
    std::vector<int> times(expected.size(), 0);
    for (const auto& [replica, indices] : by_replica[key]) {
      for (const std::int32_t index : indices) {
        if (index >= 0 && static_cast<std::size_t>(index) < times.size()) ++times[static_cast<std::size_t>(index)];
      }
    }
    for (std::size_t i = 0; i < times.size(); ++i) {
      if (times[i] == 1) continue;
      violations.push_back({Rule::samples, fmt::format("sample {} of {} is {}", i, describe(key),
                                                       times[i] == 0 ? "dropped" : "doubled")});
    }
  }
  for (const Microbatch& microbatch : program.microbatches) {
    for (const Segment& segment : microbatch.segments) {
      const std::vector<ExpectedSample> expected = context.expected(segment.task, segment.global_batch);
      if (static_cast<std::size_t>(segment.index) < expected.size() &&
          expected[static_cast<std::size_t>(segment.index)].sample != segment.sample) {
        violations.push_back(
            {Rule::samples, fmt::format("microbatch {}: sample {} of task {} batch {} is dataset sample {}, not {}",
                                        microbatch.id, segment.index, segment.task, segment.global_batch,
                                        expected[static_cast<std::size_t>(segment.index)].sample, segment.sample)});
      }
    }
  }
}

void verify_steps(const Program& program, const VerifyContext& context, std::vector<Violation>& violations) {
  for (std::size_t s = 0; s < program.stages.size(); ++s) {
    const StageProgram& stage = program.stages[s];
    const bool shared =
        stage.ranks.size() > 1 || std::any_of(program.stages.begin(), program.stages.end(),
                                              [](const StageProgram& other) { return other.replica > 0; });
    std::vector<std::int64_t> next = program.before.stages[s].next_batch;
    std::map<BatchKey, int> backwards_left;
    std::map<BatchKey, std::set<InstructionId>> syncs, norms;
    for (const MicrobatchId id : program.before.stages[s].live) {
      std::set<BatchKey> keys;
      for (const Segment& segment : program.microbatch(id).segments) keys.insert({segment.task, segment.global_batch});
      for (const BatchKey& key : keys) ++backwards_left[key];
    }
    const auto gate = [&](const BatchKey& key, std::string_view what) {
      const std::int64_t open = next[static_cast<std::size_t>(key.task)];
      if (key.global_batch == open) return;
      violations.push_back(
          {Rule::step_gate, fmt::format("{}: {} of {} comes {} the Step of batch {}", describe(stage), what,
                                        describe(key), key.global_batch > open ? "before" : "after",
                                        key.global_batch > open ? open : key.global_batch)});
    };
    for (std::size_t i = 0; i < stage.instructions.size(); ++i) {
      const Instruction& instruction = stage.instructions[i];
      const InstructionId id = stage.first_id + static_cast<InstructionId>(i);
      const BatchKey own{instruction.task, instruction.global_batch};
      for (const Part& part : stage.parts_of(instruction)) {
        if (part.first_subgraph > 0) continue;
        std::set<BatchKey> keys;
        for (const Segment& segment : program.microbatch(part.microbatch).segments)
          keys.insert({segment.task, segment.global_batch});
        for (const BatchKey& key : keys) {
          if (instruction.kind == Kind::forward) gate(key, "Forward"), ++backwards_left[key];
          if (instruction.kind == Kind::backward) gate(key, "Backward"), --backwards_left[key];
        }
      }
      if (instruction.kind == Kind::sync_adapter) syncs[own].insert(id);
      if (instruction.kind == Kind::reduce_norm) norms[own].insert(id);
      if ((instruction.kind == Kind::sync_adapter || instruction.kind == Kind::reduce_norm) &&
          backwards_left[own] != 0) {
        violations.push_back({Rule::step_gate, fmt::format("{}: {} of {} comes before its last Backward",
                                                           describe(stage), name(instruction.kind), describe(own))});
      }
      if (instruction.kind != Kind::step) continue;
      gate(own, "Step");
      next[static_cast<std::size_t>(own.task)] = own.global_batch + 1;
      if (backwards_left[own] != 0)
        violations.push_back({Rule::step_gate, fmt::format("{}: Step of {} comes before its last Backward",
                                                           describe(stage), describe(own))});
      const auto waits = stage.waits_of(instruction);
      for (const auto* needed : {&syncs[own], &norms[own]}) {
        for (const InstructionId sync : *needed) {
          const bool waited = std::find(waits.begin(), waits.end(), sync) != waits.end();
          const bool through_norm = needed == &syncs[own] && !norms[own].empty();
          if (!waited && !through_norm)
            violations.push_back(
                {Rule::step_gate,
                 fmt::format("{}: Step of {} does not wait for {}", describe(stage), describe(own),
                             name(stage.instructions[static_cast<std::size_t>(sync - stage.first_id)].kind))});
        }
      }
      std::int32_t synced = 0;
      for (const InstructionId sync : syncs[own])
        synced += stage.instructions[static_cast<std::size_t>(sync - stage.first_id)].layers.count();
      const bool synced_before =
          std::any_of(waits.begin(), waits.end(), [&](InstructionId waited) { return waited < stage.first_id; });
      if (shared && !synced_before && synced != stage.layers.count()) {
        violations.push_back(
            {Rule::step_gate, fmt::format("{}: Step of {} has the synced gradients of {} layers of {}", describe(stage),
                                          describe(own), synced, stage.layers.count())});
      }
      if (context.tasks[static_cast<std::size_t>(own.task)].clips && norms[own].empty() && !synced_before) {
        violations.push_back({Rule::step_gate, fmt::format("{}: Step of {} clips and there is no ReduceNorm",
                                                           describe(stage), describe(own))});
      }
    }
    if (next != program.after.stages[s].next_batch)
      violations.push_back(
          {Rule::boundary, fmt::format("{}: the Steps done are not those the boundary says", describe(stage))});
  }
}

void verify_boundary(const Program& program, std::vector<Violation>& violations) {
  for (std::size_t s = 0; s < program.stages.size(); ++s) {
    std::map<BatchKey, std::set<std::int32_t>> gradients;
    for (const PartialGradient& partial : program.before.stages[s].gradients) {
      gradients[{partial.task, partial.global_batch}].insert(partial.indices.begin(), partial.indices.end());
    }
    const StageProgram& stage = program.stages[s];
    for (const Instruction& instruction : stage.instructions) {
      if (instruction.kind == Kind::step) gradients.erase({instruction.task, instruction.global_batch});
      if (instruction.kind != Kind::backward) continue;
      for (const Part& part : stage.parts_of(instruction)) {
        for (const Segment& segment : program.microbatch(part.microbatch).segments) {
          if (segment.begin == 0) gradients[{segment.task, segment.global_batch}].insert(segment.index);
        }
      }
    }
    std::vector<PartialGradient> left;
    for (const auto& [key, indices] : gradients)
      left.push_back({key.task, key.global_batch, {indices.begin(), indices.end()}});
    if (left != program.after.stages[s].gradients) {
      violations.push_back(
          {Rule::boundary, fmt::format("{}: partly accumulated gradients at the end are not those the boundary says",
                                       describe(stage))});
    }
  }
}

}  // namespace braid::planner::detail
