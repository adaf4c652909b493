// The rules about optimizer steps: the gate, what a Step waits for, and what the boundary says of them.

#include <algorithm>
#include <map>
#include <set>

#include "base/error.h"
#include "planner/program/batch_key.h"
#include "planner/verify/known_ended.h"
#include "planner/verify/verify.h"

namespace braid::planner::detail {
namespace {

/// Whether the runs are just these layers, each once.
bool covers(std::vector<LayerRange> runs, std::span<const LayerRange> layers) {
  std::sort(runs.begin(), runs.end(), [](const LayerRange& a, const LayerRange& b) { return a.first < b.first; });
  auto run = runs.begin();
  for (const LayerRange& range : layers) {
    std::int32_t reached = range.first;
    for (; run != runs.end() && reached < range.last; ++run) {
      if (run->first != reached || run->last <= run->first) return false;
      reached = run->last;
    }
    if (reached != range.last) return false;
  }
  return run == runs.end();
}

class StepRules {
 public:
  StepRules(const Program& program, std::size_t index, const VerifyContext& context, std::vector<Violation>& violations)
      : program_(program),
        before_(program.before.stages[index]),
        after_(program.after.stages[index]),
        stage_(program.stages[index]),
        context_(context),
        violations_(violations),
        known_(stage_),
        next_(before_.next_batch) {
    shared_ = stage_.ranks.size() > 1 ||
              std::any_of(program.stages.begin(), program.stages.end(),
                          [&](const StageProgram& other) { return other.replica != stage_.replica; });
    for (const MicrobatchId id : before_.live) {
      for (const BatchKey& key : batches_of(program.microbatch(id))) ++backwards_left_[key];
    }
  }

  void run() {
    for (std::size_t i = 0; i < stage_.instructions.size(); ++i) {
      const Instruction& instruction = stage_.instructions[i];
      const BatchKey own{instruction.task, instruction.global_batch};
      switch (instruction.kind) {
        case Kind::forward:
        case Kind::backward:
          for (const Part& part : stage_.parts_of(instruction)) pass(i, instruction.kind, part);
          break;
        case Kind::sync_adapter:
        case Kind::reduce_norm:
          sync(i, own);
          break;
        case Kind::step:
          step(i, own);
          break;
        default:
          break;
      }
    }
    for (const auto& [key, batch] : batches_) check_backwards_waited(key, batch);
    if (next_ != after_.next_batch) bad(Rule::boundary, "the Steps done are not those the boundary says");
  }

 private:
  /// What has been issued for a batch that is not yet stepped.
  struct Batch {
    std::vector<std::size_t> syncs, norms;  // places
    std::size_t last_backward = 0;
    bool any_backward = false;
  };

  void bad(Rule rule, const std::string& what) { violations_.push_back({rule, describe(stage_) + ": " + what}); }

  void check_gate(const BatchKey& key, std::string_view what) {
    const std::int64_t open = next_[static_cast<std::size_t>(key.task)];
    if (key.global_batch == open) return;
    bad(Rule::step_gate,
        fmt::format("{} of {} comes {} the Step of batch {}", what, describe(key),
                    key.global_batch > open ? "before" : "after", key.global_batch > open ? open : key.global_batch));
  }

  void pass(std::size_t i, Kind kind, const Part& part) {
    for (const BatchKey& key : batches_of(program_.microbatch(part.microbatch))) {
      if (stage_.begins(kind, part)) check_gate(key, name(kind));
      if (kind == Kind::forward && stage_.begins(kind, part)) ++backwards_left_[key];
      if (kind == Kind::backward && stage_.ends(kind, part)) {
        --backwards_left_[key];
        Batch& batch = batches_[key];
        batch.last_backward = i;
        batch.any_backward = true;
      }
    }
  }

  /// A sync reads the gradients of all the batch's Backwards, and writes where the Step before still reads.
  void sync(std::size_t i, const BatchKey& own) {
    const Kind kind = stage_.instructions[i].kind;
    check_gate(own, name(kind));
    Batch& batch = batches_[own];
    const bool first_of_all = kind == Kind::sync_adapter || batch.syncs.empty();
    if (backwards_left_[own] != 0)
      bad(Rule::step_gate, fmt::format("{} of {} comes before its last Backward", name(kind), describe(own)));
    if (first_of_all && !batch.any_backward && has_gradients_before(own) && !waits_for_earlier_compute(i, own))
      bad(Rule::step_gate,
          fmt::format("{} of {} does not wait for its last Backward, of an earlier slice", name(kind), describe(own)));
    if (const auto stepped = last_step_.find(own.task);
        first_of_all && stepped != last_step_.end() && !known_.ended(stepped->second, i))
      bad(Rule::step_gate, fmt::format("{} of {} does not wait for the Step of batch {}", name(kind), describe(own),
                                       own.global_batch - 1));
    if (kind == Kind::sync_adapter && !batch.norms.empty())
      bad(Rule::step_gate, fmt::format("SyncAdapter of {} comes after its ReduceNorm", describe(own)));
    if (kind == Kind::reduce_norm) {
      for (const std::size_t earlier : batch.syncs) {
        if (!known_.ended(earlier, i))
          bad(Rule::step_gate, fmt::format("ReduceNorm of {} does not wait for SyncAdapter", describe(own)));
      }
    }
    (kind == Kind::sync_adapter ? batch.syncs : batch.norms).push_back(i);
  }

  /// Asked when all of the batch's Backwards in this slice are known.
  void check_backwards_waited(const BatchKey& key, const Batch& batch) {
    if (!batch.any_backward) return;
    for (const auto* places : {&batch.syncs, &batch.norms}) {
      // A ReduceNorm behind SyncAdapters waits for those.
      if (places == &batch.norms && !batch.syncs.empty()) continue;
      for (const std::size_t place : *places) {
        if (!known_.ended(batch.last_backward, place))
          bad(Rule::step_gate, fmt::format("{} of {} does not wait for its last Backward",
                                           name(stage_.instructions[place].kind), describe(key)));
      }
    }
  }

  bool has_gradients_before(const BatchKey& key) const {
    return std::any_of(before_.gradients.begin(), before_.gradients.end(), [&](const PartialGradient& partial) {
      return BatchKey{partial.task, partial.global_batch} == key;
    });
  }

  /// Compute of earlier slices has ended when any of this slice has, or when the batch's SyncAdapter has, which waited
  /// for it.
  bool waits_for_earlier_compute(std::size_t i, const BatchKey& own) const {
    if (known_.any(Stream::compute, i)) return true;
    const auto waits = stage_.waits_of(stage_.instructions[i]);
    return std::any_of(waits.begin(), waits.end(), [&](InstructionId id) {
      const Awaited* awaited = id < stage_.first_id ? find_awaited(before_, id) : nullptr;
      if (awaited && awaited->kind == Kind::sync_adapter) return BatchKey{awaited->task, awaited->global_batch} == own;
      return awaited && (awaited->kind == Kind::backward || awaited->kind == Kind::step);
    });
  }

  void step(std::size_t i, const BatchKey& own) {
    check_gate(own, "Step");
    next_[static_cast<std::size_t>(own.task)] = own.global_batch + 1;
    if (backwards_left_[own] != 0)
      bad(Rule::step_gate, fmt::format("Step of {} comes before its last Backward", describe(own)));
    const Batch batch = batches_[own];
    check_backwards_waited(own, batch);
    std::vector<LayerRange> synced;
    std::size_t norms = batch.norms.size();
    for (const std::size_t sync : batch.syncs) {
      check_waited(i, sync, own);
      synced.push_back(stage_.instructions[sync].layers);
    }
    for (const std::size_t norm : batch.norms) check_waited(i, norm, own);
    // Of earlier slices: those that it waits for.
    for (const InstructionId id : stage_.waits_of(stage_.instructions[i])) {
      const Awaited* awaited = id < stage_.first_id ? find_awaited(before_, id) : nullptr;
      if (!awaited || BatchKey{awaited->task, awaited->global_batch} != own) continue;
      if (awaited->kind == Kind::sync_adapter) synced.push_back(awaited->layers);
      if (awaited->kind == Kind::reduce_norm) ++norms;
    }
    if (shared_ && !covers(synced, stage_.layers)) {
      std::int32_t layers = 0;
      for (const LayerRange& run : synced) layers += run.count();
      bad(Rule::step_gate, fmt::format("Step of {} has the synced gradients of {} layers, not of just its {}",
                                       describe(own), layers, stage_.layer_count()));
    }
    const bool clips = context_.tasks[static_cast<std::size_t>(own.task)].clips;
    if (clips && norms != 1)
      bad(Rule::step_gate, fmt::format("Step of {} clips and there is {} ReduceNorm", describe(own),
                                       norms == 0 ? "no" : "more than one"));
    batches_.erase(own);
    last_step_[own.task] = i;
  }

  void check_waited(std::size_t step, std::size_t place, const BatchKey& own) {
    if (!known_.ended(place, step))
      bad(Rule::step_gate,
          fmt::format("Step of {} does not wait for {}", describe(own), name(stage_.instructions[place].kind)));
  }

  const Program& program_;
  const StageBoundary& before_;
  const StageBoundary& after_;
  const StageProgram& stage_;
  const VerifyContext& context_;
  std::vector<Violation>& violations_;
  KnownEnded known_;
  bool shared_ = false;
  std::vector<std::int64_t> next_;
  std::map<BatchKey, int> backwards_left_;
  std::map<BatchKey, Batch> batches_;
  std::map<TaskIndex, std::size_t> last_step_;  // of each task in this slice
};

}  // namespace

void verify_steps(const Program& program, const VerifyContext& context, std::vector<Violation>& violations) {
  for (std::size_t s = 0; s < program.stages.size(); ++s) StepRules(program, s, context, violations).run();
}

void verify_boundary(const Program& program, std::vector<Violation>& violations) {
  for (std::size_t s = 0; s < program.stages.size(); ++s) {
    const StageProgram& stage = program.stages[s];
    const auto bad = [&](const std::string& what) {
      violations.push_back({Rule::boundary, describe(stage) + ": " + what});
    };
    std::map<BatchKey, std::set<SamplePiece>> gradients;
    for (const PartialGradient& partial : program.before.stages[s].gradients)
      gradients[{partial.task, partial.global_batch}].insert(partial.samples.begin(), partial.samples.end());
    for (const Instruction& instruction : stage.instructions) {
      if (instruction.kind == Kind::step) gradients.erase({instruction.task, instruction.global_batch});
      if (instruction.kind != Kind::backward) continue;
      for (const Part& part : stage.parts_of(instruction)) {
        if (!stage.ends(Kind::backward, part)) continue;
        for (const Segment& segment : program.microbatch(part.microbatch).segments)
          gradients[{segment.task, segment.global_batch}].insert({segment.index, segment.begin, segment.end});
      }
    }
    std::vector<PartialGradient> left;
    for (const auto& [key, pieces] : gradients)
      left.push_back({key.task, key.global_batch, {pieces.begin(), pieces.end()}});
    if (left != program.after.stages[s].gradients)
      bad("partly accumulated gradients at the end are not those the boundary says");
    const InstructionId end = stage.first_id + static_cast<InstructionId>(stage.instructions.size());
    for (const Awaited& awaited : program.after.stages[s].awaited) {
      const Awaited* earlier =
          awaited.id < stage.first_id ? find_awaited(program.before.stages[s], awaited.id) : nullptr;
      const bool known = awaited.id >= stage.first_id && awaited.id < end
                             ? describe_awaited(stage, static_cast<std::size_t>(awaited.id - stage.first_id)) == awaited
                             : earlier && *earlier == awaited;
      if (!known) bad(fmt::format("the boundary awaits {}, which is not what it says", awaited.id));
    }
  }
}

}  // namespace braid::planner::detail
