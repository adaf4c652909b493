#include "planner/plan/stash_budget.h"

#include <algorithm>

#include "planner/program/memory_walk.h"

namespace braid::planner {

using costmodel::MicrobatchLoad;
using costmodel::Pass;
using costmodel::StageShape;

std::vector<StageShape> stage_shapes(const ReplicaShape& replica) {
  std::vector<StageShape> shapes;
  for (std::int32_t s = 0; s < replica.stages(); ++s)
    shapes.push_back({replica.layers_of(s), s == 0, s + 1 == replica.stages(), replica.tp, replica.sequence_parallel,
                      replica.recompute_of(s)});
  return shapes;
}

StashBudget::StashBudget(const PolicyInput& input, const costmodel::Storage& storage)
    : capacity_(input.capacity), sends_(input.deployment.front().stages() > 1) {
  MemoryContext memory{input.workload.backbone, {}, storage};
  for (const workload::Task& task : input.workload.tasks) memory.adapters.push_back(task.adapter);
  const std::vector<StageShape> shapes = stage_shapes(input.deployment.front());
  for (std::size_t s = 0; s < shapes.size(); ++s) {
    const StageShape& shape = shapes[s];
    if (s > 0 && shape == shapes[s - 1]) {
      held_.push_back(held_.back());
      continue;
    }
    held_.push_back(held_throughout(shape, memory, input.deployment.size() > 1).fixed());
  }
}

std::vector<Bytes> StashBudget::with(std::span<const Bytes> scratch, Bytes message) const {
  // Of messages: one each way that comes, is posted ahead, or leaves.
  const Bytes messages = sends_ ? 4 * message : 0;
  std::vector<Bytes> budget;
  for (std::size_t s = 0; s < held_.size(); ++s) {
    budget.push_back(capacity_ > 0 ? capacity_ - held_[s] - scratch[s] - messages : 0);
    if (capacity_ > 0 && budget.back() == 0) budget.back() = -1;
  }
  return budget;
}

std::vector<Bytes> scratch_of(const costmodel::BackboneShape& backbone, std::span<const StageShape> stages,
                              const MicrobatchLoad& load, const costmodel::Storage& storage) {
  std::vector<Bytes> scratch;
  for (std::size_t s = 0; s < stages.size(); ++s) {
    const bool like_last = s > 0 && stages[s] == stages[s - 1];
    scratch.push_back(like_last
                          ? scratch.back()
                          : std::max(costmodel::workspace_bytes(backbone, stages[s], load, Pass::forward, storage),
                                     costmodel::workspace_bytes(backbone, stages[s], load, Pass::backward, storage)));
  }
  return scratch;
}

std::vector<Bytes> stash_budget(const PolicyInput& input, const costmodel::Storage& storage,
                                std::span<const MicrobatchLoad> loads) {
  const costmodel::BackboneShape& backbone = input.workload.backbone;
  const std::vector<StageShape> shapes = stage_shapes(input.deployment.front());
  std::vector<Bytes> most(shapes.size(), 0);
  Bytes message = 0;
  for (const MicrobatchLoad& load : loads) {
    const std::vector<Bytes> scratch = scratch_of(backbone, shapes, load, storage);
    for (std::size_t s = 0; s < most.size(); ++s) most[s] = std::max(most[s], scratch[s]);
    message = std::max(message, load.tokens * costmodel::message_bytes_per_token(backbone, storage));
  }
  return StashBudget(input, storage).with(most, message);
}

}  // namespace braid::planner
