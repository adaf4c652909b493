// The rules about what is computed: every sample once, and in order.

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "base/error.h"
#include "planner/program/batch_key.h"
#include "planner/verify/verify.h"

namespace braid::planner::detail {
namespace {

using Pieces = std::vector<std::pair<std::int32_t, std::int32_t>>;

bool tiles(Pieces pieces, std::int32_t tokens) {
  std::sort(pieces.begin(), pieces.end());
  std::int32_t reached = 0;
  for (const auto& [begin, end] : pieces) {
    // A piece at the sample's end that only carries padding is empty.
    if (begin != reached || end < begin || (end == begin && end != tokens)) return false;
    reached = end;
  }
  return reached == tokens;
}

using SampleKey = std::tuple<TaskIndex, std::int64_t, std::int32_t>;

SampleKey sample_of(const Segment& segment) {
  return {segment.task, segment.global_batch, segment.index};
}

/// Which microbatches are chunks of the same samples: each microbatch's chunk group, named by its least member.
std::map<MicrobatchId, MicrobatchId> chunk_groups(const Program& program) {
  std::map<MicrobatchId, MicrobatchId> group;
  std::map<SampleKey, MicrobatchId> first_with;
  const auto root = [&](MicrobatchId id) {
    while (group[id] != id) id = group[id];
    return id;
  };
  for (const Microbatch& microbatch : program.microbatches) {
    group[microbatch.id] = microbatch.id;
    for (const Segment& segment : microbatch.segments) {
      const auto [other, fresh] = first_with.emplace(sample_of(segment), microbatch.id);
      if (fresh) continue;
      const MicrobatchId a = root(other->second), b = root(microbatch.id);
      group[std::max(a, b)] = std::min(a, b);
    }
  }
  for (auto& [id, least] : group) least = root(id);
  return group;
}

/// Follows one stage's compute order.
class OrderRules {
 public:
  OrderRules(const Program& program, std::size_t index, const std::map<MicrobatchId, MicrobatchId>& groups,
             std::vector<Violation>& violations)
      : program_(program), index_(index), stage_(program.stages[index]), groups_(groups), violations_(violations) {
    const std::vector<MicrobatchId>& live = program.before.stages[index].live;
    live_.insert(live.begin(), live.end());
    forward_ = live_;
    for (const MicrobatchId id : live) {
      for (const Segment& segment : program.microbatch(id).segments) {
        std::int32_t& tokens = reached_[sample_of(segment)];
        tokens = std::max(tokens, segment.end);
      }
    }
  }

  void run() {
    for (const Instruction& instruction : stage_.instructions) {
      if (instruction.parts.count > 0) groups_before_ = std::exchange(groups_now_, {});
      for (const Part& part : stage_.parts_of(instruction)) check_part(instruction.kind, part);
    }
    for (const auto& [pass, next] : open_)
      bad(Rule::order, fmt::format("{} of microbatch {} stops at subgraph {} of {}", name(pass.first), pass.second,
                                   next, stage_.subgraphs));
    if (std::vector<MicrobatchId>(live_.begin(), live_.end()) != program_.after.stages[index_].live)
      bad(Rule::boundary, fmt::format("{} microbatches are under way at the end, the boundary has {}", live_.size(),
                                      program_.after.stages[index_].live.size()));
    check_keys();
  }

 private:
  void bad(Rule rule, const std::string& what) { violations_.push_back({rule, describe(stage_) + ": " + what}); }

  void check_part(Kind pass, const Part& part) {
    const MicrobatchId id = part.microbatch;
    const Microbatch& microbatch = program_.microbatch(id);
    const bool forward = pass == Kind::forward;
    if (microbatch.replica != stage_.replica)
      bad(Rule::order, fmt::format("computes microbatch {} of replica {}", id, microbatch.replica));
    // Parts of a pass follow one another through all subgraphs, without a gap.
    const auto open = open_.find({pass, id});
    const std::int32_t expected = open != open_.end() ? open->second : forward ? 0 : stage_.subgraphs;
    const std::int32_t start = forward ? part.first_subgraph : part.last_subgraph;
    if (start != expected)
      bad(Rule::order,
          fmt::format("{} of microbatch {} goes on at subgraph {} in place of {}", name(pass), id, start, expected));
    if (stage_.ends(pass, part)) {
      open_.erase({pass, id});
    } else {
      open_[{pass, id}] = forward ? part.last_subgraph : part.first_subgraph;
    }
    if (!stage_.begins(pass, part)) return;
    check_group(pass, id);
    if (forward) {
      if (!forward_.insert(id).second) bad(Rule::samples, fmt::format("microbatch {} goes forward twice", id));
      live_.insert(id);
    } else if (live_.erase(id) == 0) {
      bad(Rule::order, fmt::format("microbatch {} goes backward before it went forward", id));
    }
    // Chunks stack up and come off the top.
    for (const Segment& segment : microbatch.segments) {
      std::int32_t& tokens = reached_[sample_of(segment)];
      if (tokens != (forward ? segment.begin : segment.end)) {
        bad(Rule::order, fmt::format("chunk [{}, {}) of {} sample {} goes {} out of turn", segment.begin, segment.end,
                                     describe(BatchKey{segment.task, segment.global_batch}), segment.index,
                                     forward ? "forward" : "backward"));
      }
      tokens = forward ? segment.end : segment.begin;
    }
  }

  /// A chunk group goes forward in instructions that follow one another, and backward likewise. Groups of several
  /// hTasks may go side by side.
  void check_group(Kind pass, MicrobatchId id) {
    const std::pair<Kind, MicrobatchId> now{pass, groups_.at(id)};
    const bool goes_on = groups_before_.contains(now) || groups_now_.contains(now);
    if (!goes_on && !entered_.insert(now).second)
      bad(Rule::order, fmt::format("microbatch {} goes {} apart from the other chunks of its samples", id,
                                   pass == Kind::forward ? "forward" : "backward"));
    groups_now_.insert(now);
  }

  void check_keys() {
    const std::vector<StoredKeys>& stored = program_.after.stages[index_].keys;
    std::map<SampleKey, std::int32_t> kept;
    std::set<SampleKey> needed;
    for (const MicrobatchId id : live_) {
      for (const Segment& segment : program_.microbatch(id).segments) {
        std::int32_t& tokens = kept[sample_of(segment)];
        tokens = std::max(tokens, segment.end);
        if (segment.begin > 0) needed.insert(sample_of(segment));
      }
    }
    for (const StoredKeys& keys : stored) {
      const SampleKey sample{keys.task, keys.global_batch, keys.index};
      const auto here = kept.find(sample);
      if (here == kept.end() || here->second != keys.tokens)
        bad(Rule::boundary, fmt::format("the boundary keeps keys of {} tokens of sample {}, which are not there",
                                        keys.tokens, keys.index));
      needed.erase(sample);
    }
    if (!needed.empty()) bad(Rule::boundary, fmt::format("the boundary forgets the keys of {} samples", needed.size()));
  }

  const Program& program_;
  std::size_t index_;
  const StageProgram& stage_;
  const std::map<MicrobatchId, MicrobatchId>& groups_;
  std::vector<Violation>& violations_;
  std::set<MicrobatchId> live_, forward_;
  std::map<SampleKey, std::int32_t> reached_;                   // tokens gone forward and not yet backward
  std::map<std::pair<Kind, MicrobatchId>, std::int32_t> open_;  // passes between subgraphs, and the next one
  std::set<std::pair<Kind, MicrobatchId>> entered_;
  std::set<std::pair<Kind, MicrobatchId>> groups_before_, groups_now_;  // of the instruction before, and of this one
};

/// Holds what stages have taken backward, when they Step, against what the global batch is.
class SampleRules {
 public:
  SampleRules(const Program& program, const VerifyContext& context, std::vector<Violation>& violations)
      : program_(program), context_(context), violations_(violations) {}

  void run() {
    for (std::size_t s = 0; s < program_.stages.size(); ++s) check_stage(s);
    for (const auto& [key, replicas] : by_replica_) check_whole(key, replicas);
    check_dataset_samples();
  }

 private:
  void bad(std::string message) { violations_.push_back({Rule::samples, std::move(message)}); }

  void check_stage(std::size_t s) {
    const StageProgram& stage = program_.stages[s];
    std::map<BatchKey, std::map<std::int32_t, Pieces>> backward;
    for (const PartialGradient& partial : program_.before.stages[s].gradients) {
      for (const SamplePiece& piece : partial.samples)
        backward[{partial.task, partial.global_batch}][piece.index].emplace_back(piece.begin, piece.end);
    }
    for (const Instruction& instruction : stage.instructions) {
      if (instruction.kind == Kind::backward) {
        for (const Part& part : stage.parts_of(instruction)) {
          if (!stage.ends(Kind::backward, part)) continue;
          for (const Segment& segment : program_.microbatch(part.microbatch).segments)
            backward[{segment.task, segment.global_batch}][segment.index].emplace_back(segment.begin, segment.end);
        }
      }
      if (instruction.kind == Kind::step) {
        const BatchKey key{instruction.task, instruction.global_batch};
        check_step(stage, key, backward[key]);
        backward.erase(key);
      }
    }
  }

  void check_step(const StageProgram& stage, const BatchKey& key, const std::map<std::int32_t, Pieces>& samples) {
    const std::vector<ExpectedSample> expected = context_.expected(key.task, key.global_batch);
    std::set<std::int32_t> here;
    for (const auto& [index, pieces] : samples) {
      const auto place = static_cast<std::size_t>(index);
      if (index < 0 || place >= expected.size()) {
        bad(fmt::format("{}: sample {} of {} does not exist", describe(stage), index, describe(key)));
      } else if (!tiles(pieces, expected[place].tokens)) {
        bad(fmt::format("{}: sample {} of {} is not computed exactly once", describe(stage), index, describe(key)));
      }
      here.insert(index);
    }
    // Stages may step a batch in unlike slices; those that do so here must agree.
    const auto [other, fresh] = by_replica_[key].emplace(stage.replica, here);
    if (!fresh && other->second != here)
      bad(fmt::format("{}: {} has other samples than on the stages before", describe(stage), describe(key)));
  }

  /// All replicas together hold the batch, where all of them step it in this slice.
  void check_whole(const BatchKey& key, const std::map<std::int32_t, std::set<std::int32_t>>& replicas) {
    std::set<std::int32_t> all;
    for (const StageProgram& stage : program_.stages) all.insert(stage.replica);
    if (replicas.size() < all.size()) return;
    const std::vector<ExpectedSample> expected = context_.expected(key.task, key.global_batch);
    std::vector<int> times(expected.size(), 0);
    for (const auto& [replica, indices] : replicas) {
      for (const std::int32_t index : indices) {
        if (index >= 0 && static_cast<std::size_t>(index) < times.size()) ++times[static_cast<std::size_t>(index)];
      }
    }
    for (std::size_t i = 0; i < times.size(); ++i) {
      if (times[i] != 1)
        bad(fmt::format("sample {} of {} is {}", i, describe(key), times[i] == 0 ? "dropped" : "doubled"));
    }
  }

  void check_dataset_samples() {
    for (const Microbatch& microbatch : program_.microbatches) {
      for (const Segment& segment : microbatch.segments) {
        const std::vector<ExpectedSample>& expected = expected_of({segment.task, segment.global_batch});
        const auto place = static_cast<std::size_t>(segment.index);
        if (place >= expected.size() || expected[place].sample == segment.sample) continue;
        bad(fmt::format("microbatch {}: sample {} of {} is dataset sample {}, not {}", microbatch.id, segment.index,
                        describe(BatchKey{segment.task, segment.global_batch}), expected[place].sample,
                        segment.sample));
      }
    }
  }

  const std::vector<ExpectedSample>& expected_of(const BatchKey& key) {
    const auto known = expected_.find(key);
    if (known != expected_.end()) return known->second;
    return expected_[key] = context_.expected(key.task, key.global_batch);
  }

  const Program& program_;
  const VerifyContext& context_;
  std::vector<Violation>& violations_;
  std::map<BatchKey, std::map<std::int32_t, std::set<std::int32_t>>> by_replica_;  // samples that each has stepped
  std::map<BatchKey, std::vector<ExpectedSample>> expected_;
};

}  // namespace

void verify_order(const Program& program, std::vector<Violation>& violations) {
  const std::map<MicrobatchId, MicrobatchId> groups = chunk_groups(program);
  for (std::size_t s = 0; s < program.stages.size(); ++s) OrderRules(program, s, groups, violations).run();
}

void verify_samples(const Program& program, const VerifyContext& context, std::vector<Violation>& violations) {
  SampleRules(program, context, violations).run();
}

}  // namespace braid::planner::detail
