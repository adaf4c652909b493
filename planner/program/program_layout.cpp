#include "planner/program/program_layout.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>

namespace braid::planner {
namespace {

class LayingOut {
 public:
  LayingOut(const LoweringRules& rules, InstructionId first_id) : rules_(rules), first_id_(first_id) {}

  ProgramLayout run() {
    layout_.empty.task_count = static_cast<std::int32_t>(rules_.tasks.size());
    layout_.empty.blocking_messages = rules_.blocking_messages;
    make_stages();
    make_channels();
    make_groups();
    layout_.empty.before = layout_.empty.after = empty_boundary(layout_.empty);
    return std::move(layout_);
  }

 private:
  StageIndex stage_count() const { return static_cast<StageIndex>(layout_.empty.stages.size()); }

  void make_stages() {
    std::int32_t next_rank = 0;
    for (std::size_t replica = 0; replica < rules_.replicas.size(); ++replica) {
      const ReplicaShape& shape = rules_.replicas[replica];
      layout_.first_stage.push_back(stage_count());
      for (std::int32_t s = 0; s < shape.stages(); ++s) {
        StageProgram stage;
        stage.replica = static_cast<std::int32_t>(replica);
        stage.stage = s;
        for (std::int32_t c = 0; c < shape.model_chunks; ++c) stage.layers.push_back(shape.chunk(s, c));
        stage.subgraphs = shape.model_chunks;
        stage.recompute = shape.recompute_of(s);
        stage.sequence_parallel = shape.sequence_parallel;
        stage.has_embedding = s == 0;
        stage.has_head = s == shape.stages() - 1;
        stage.first_id = first_id_;
        for (std::int32_t t = 0; t < shape.tp; ++t) stage.ranks.push_back(next_rank++);
        layout_.empty.stages.push_back(std::move(stage));
      }
    }
  }

  void make_channels() {
    layout_.activation_to.assign(layout_.empty.stages.size(), kNone);
    layout_.gradient_to.assign(layout_.empty.stages.size(), kNone);
    const auto add = [&](StageIndex from, StageIndex to) {
      layout_.empty.channels.push_back({from, to});
      return static_cast<ChannelIndex>(layout_.empty.channels.size() - 1);
    };
    for (StageIndex stage = 0; stage < stage_count(); ++stage) {
      const StageProgram& from = layout_.empty.stages[static_cast<std::size_t>(stage)];
      if ((from.has_head && !from.interleaves()) || layout_.next(stage) == stage) continue;
      layout_.activation_to[static_cast<std::size_t>(layout_.next(stage))] = add(stage, layout_.next(stage));
      layout_.gradient_to[static_cast<std::size_t>(stage)] = add(layout_.next(stage), stage);
    }
  }

  GroupIndex add_group(std::vector<StageIndex> stages) {
    layout_.empty.groups.push_back({std::move(stages)});
    return static_cast<GroupIndex>(layout_.empty.groups.size() - 1);
  }

  /// Cuts the layers wherever some replica cuts them; each run belongs to one stage of every replica.
  void make_groups() {
    layout_.shared.resize(layout_.empty.stages.size());
    std::set<std::int32_t> cuts;
    std::int32_t ranks = 0;
    for (const StageProgram& stage : layout_.empty.stages) {
      for (const LayerRange& range : stage.layers) cuts.insert({range.first, range.last});
      ranks = std::max(ranks, static_cast<std::int32_t>(stage.ranks.size()));
    }
    if (rules_.replicas.size() > 1 || ranks > 1) {
      std::map<std::vector<StageIndex>, GroupIndex> known;
      for (auto cut = cuts.begin(); std::next(cut) != cuts.end(); ++cut) {
        const LayerRange run{*cut, *std::next(cut)};
        std::vector<StageIndex> holders;
        for (StageIndex stage = 0; stage < stage_count(); ++stage) {
          if (layout_.empty.stages[static_cast<std::size_t>(stage)].holds(run)) holders.push_back(stage);
        }
        if (!known.contains(holders)) known[holders] = add_group(holders);
        for (const StageIndex stage : holders)
          layout_.shared[static_cast<std::size_t>(stage)].push_back({run, known[holders]});
      }
    }
    for (std::size_t replica = 0; replica < rules_.replicas.size(); ++replica) {
      std::vector<StageIndex> stages;
      for (std::int32_t s = 0; s < rules_.replicas[replica].stages(); ++s)
        stages.push_back(layout_.first_stage[replica] + s);
      layout_.norm_group.push_back(add_group(std::move(stages)));
    }
  }

  const LoweringRules& rules_;
  InstructionId first_id_;
  ProgramLayout layout_;
};

}  // namespace

StageIndex ProgramLayout::next(StageIndex index) const {
  const StageProgram& stage = empty.stages[static_cast<std::size_t>(index)];
  return stage.has_head ? first_stage[static_cast<std::size_t>(stage.replica)] : index + 1;
}

StageIndex ProgramLayout::previous(StageIndex index) const {
  if (!empty.stages[static_cast<std::size_t>(index)].has_embedding) return index - 1;
  while (!empty.stages[static_cast<std::size_t>(index)].has_head) ++index;
  return index;
}

ProgramLayout lay_out(const LoweringRules& rules, InstructionId first_id) {
  return LayingOut(rules, first_id).run();
}

}  // namespace braid::planner
