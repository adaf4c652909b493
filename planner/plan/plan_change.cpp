#include "planner/plan/plan_change.h"

#include <algorithm>

#include <fmt/ranges.h>

#include "base/error.h"
#include "costmodel/work/memory.h"

namespace braid::planner {
namespace {

/// A share of the backbone that a rank holds: layers, and of what lies below and above them.
struct Held {
  std::vector<LayerRange> layers;
  bool embedding = false, head = false;
  double begin = 0, end = 1;  // of each layer's weights

  /// The part of a layer, or of what is of none, that lies in both.
  double shared(const Held& other) const {
    return std::max(0.0, std::min(end, other.end) - std::max(begin, other.begin));
  }
};

std::int64_t common_layers(const Held& a, const Held& b) {
  std::int64_t count = 0;
  for (const LayerRange& one : a.layers) {
    for (const LayerRange& other : b.layers)
      count += std::max<std::int64_t>(0, std::min(one.last, other.last) - std::max(one.first, other.first));
  }
  return count;
}

/// Per rank.
std::vector<Held> held_by(const FixedPlan& fixed) {
  std::vector<Held> held;
  for (const ReplicaShape& replica : fixed.deployment) {
    for (std::int32_t stage = 0; stage < replica.stages(); ++stage) {
      for (std::int32_t shard = 0; shard < replica.tp; ++shard) {
        Held& rank = held.emplace_back();
        for (std::int32_t chunk = 0; chunk < replica.model_chunks; ++chunk)
          rank.layers.push_back(replica.chunk(stage, chunk));
        rank.embedding = stage == 0;
        rank.head = stage == replica.stages() - 1;
        rank.begin = static_cast<double>(shard) / replica.tp;
        rank.end = static_cast<double>(shard + 1) / replica.tp;
      }
    }
  }
  if (fixed.shards_weights) {
    const auto ranks = static_cast<double>(held.size());
    for (std::size_t r = 0; r < held.size(); ++r) {
      held[r].begin = static_cast<double>(r) / ranks;
      held[r].end = static_cast<double>(r + 1) / ranks;
    }
  }
  return held;
}

/// Of the whole backbone.
struct Weights {
  explicit Weights(const Plan& plan) {
    const auto bytes = [&](const costmodel::StageShape& stage) {
      return static_cast<double>(costmodel::backbone_bytes(plan.workload.backbone, stage, plan.fixed.storage));
    };
    layer = bytes({1, false, false, 1});
    embedding = bytes({0, true, false, 1});
    head = bytes({0, false, true, 1});
  }
  double layer = 0, embedding = 0, head = 0;
};

/// What the rank holds after that it did not before.
double loaded_bytes(const Held* before, const Held& after, const Weights& weights) {
  const double share = after.end - after.begin;
  const double same = before ? before->shared(after) : 0;
  double bytes = 0;
  for (const LayerRange& range : after.layers) bytes += static_cast<double>(range.count()) * share * weights.layer;
  if (before) bytes -= static_cast<double>(common_layers(*before, after)) * same * weights.layer;
  if (after.embedding) bytes += (share - (before && before->embedding ? same : 0)) * weights.embedding;
  if (after.head) bytes += (share - (before && before->head ? same : 0)) * weights.head;
  return bytes;
}

void compare_tasks(const Plan& before, const Plan& after, PlanChange& change) {
  const auto tasks_of = [](const Plan& plan) {
    if (plan.fixed.htasks.empty()) return plan.workload.tasks;
    std::vector<workload::Task> tasks;
    for (const TaskIndex task : plan.fixed.tasks())
      tasks.push_back(plan.workload.tasks[static_cast<std::size_t>(task)]);
    return tasks;
  };
  const std::vector<workload::Task> tasks_before = tasks_of(before), tasks_after = tasks_of(after);
  const auto named = [](const std::vector<workload::Task>& tasks, const std::string& name) {
    const auto found = std::ranges::find(tasks, name, &workload::Task::name);
    return found == tasks.end() ? nullptr : &*found;
  };
  for (const workload::Task& task : tasks_after) {
    const workload::Task* known = named(tasks_before, task.name);
    if (!known || known->adapter != task.adapter) {
      change.joined.push_back(task.name);
      continue;
    }
    ++change.stay;
    // Of parameters, gradients and two moments, all but the gradients.
    constexpr Bytes kKinds = 4, kSaved = 3;
    const costmodel::BackboneShape& backbone = after.workload.backbone;
    change.adapters += costmodel::adapter_bytes(backbone, task.adapter, backbone.layers) / kKinds * kSaved;
  }
  for (const workload::Task& task : tasks_before) {
    const workload::Task* next = named(tasks_after, task.name);
    if (!next || next->adapter != task.adapter) change.left.push_back(task.name);
  }
}

double gigabytes(Bytes bytes) {
  return static_cast<double>(bytes) / 1e9;
}

}  // namespace

PlanChange change_of(const Plan& before, const Plan& after) {
  if (before.workload.backbone != after.workload.backbone)
    throw error("{}: its plan is of backbone {}, and this workload's is {}; give a plan of the same backbone",
                before.workload.file.string(), before.workload.backbone_reference, after.workload.backbone_reference);
  PlanChange change;
  compare_tasks(before, after, change);
  const std::vector<Held> held = held_by(before.fixed), next = held_by(after.fixed);
  const Weights weights(after);
  change.ranks = static_cast<std::int64_t>(next.size());
  for (std::size_t rank = 0; rank < next.size(); ++rank) {
    const std::int64_t copies = after.fixed.backbone_copies;
    const std::int64_t known = rank < held.size() ? std::min(copies, before.fixed.backbone_copies) : 0;
    // Shares of bytes are told with doubles.
    double loaded = static_cast<double>(copies - known) * loaded_bytes(nullptr, next[rank], weights);
    if (known > 0) loaded += static_cast<double>(known) * loaded_bytes(&held[rank], next[rank], weights);
    const auto bytes = static_cast<Bytes>(loaded + 0.5);
    change.loaded += bytes;
    change.most_loaded = std::max(change.most_loaded, bytes);
    change.loading_ranks += bytes > 0 ? 1 : 0;
  }
  return change;
}

std::string describe(const PlanChange& change) {
  std::string text;
  const auto add = [&](const std::vector<std::string>& names, std::string_view one, std::string_view many) {
    if (names.empty()) return;
    text += fmt::format("{} {} ({}); ", names.size(), names.size() == 1 ? one : many, fmt::join(names, ", "));
  };
  add(change.joined, "task joins", "tasks join");
  add(change.left, "task leaves", "tasks leave");
  if (change.stay > 0)
    text += fmt::format("adapters and optimizer states of {} are saved, {:.3f} GB; ",
                        change.stay == 1 ? "1 task that stays" : fmt::format("{} tasks that stay", change.stay),
                        gigabytes(change.adapters));
  if (change.loading_ranks == 0) return text + "all weights lie where they lay";
  return text + fmt::format("{} of {} ranks load weights, up to {:.1f} GB each and {:.1f} GB in all",
                            change.loading_ranks, change.ranks, gigabytes(change.most_loaded),
                            gigabytes(change.loaded));
}

}  // namespace braid::planner
