#include "planner/muxtune/laid_out_bucket.h"

#include <algorithm>
#include <numeric>

#include "planner/window/compute_orders.h"
#include "planner/window/window.h"

namespace braid::planner {
namespace {

using costmodel::MicrobatchLoad;
using costmodel::Pass;
using costmodel::StageShape;

/// By clock and chunk: one microbatch of each hTask that has one.
std::vector<std::vector<std::vector<MicrobatchLoad>>> clocks_of(const PolicyInput& input, const FixedPlan& fixed,
                                                                std::span<const std::int32_t> bucket) {
  const WindowInput window{input.workload, input.samples, {}, 1};
  const PassStyle style = pass_style(fixed, input.workload);
  MicrobatchId next_id = 0;
  std::vector<std::vector<std::vector<MicrobatchLoad>>> clocks;
  for (const std::int32_t h : bucket) {
    std::vector<WindowStep> steps;
    for (const TaskIndex task : fixed.htasks[static_cast<std::size_t>(h)]) steps.push_back({0, h, task, 0});
    const std::vector<ChunkGroup> groups = chunk_groups(fixed, window, steps, next_id).front();
    clocks.resize(std::max(clocks.size(), groups.size()));
    for (std::size_t g = 0; g < groups.size(); ++g) {
      clocks[g].resize(std::max(clocks[g].size(), groups[g].size()));
      for (std::size_t c = 0; c < groups[g].size(); ++c)
        clocks[g][c].push_back(load_of(groups[g][c], style.adapters, style.kernels));
    }
  }
  return clocks;
}

/// A clock's chunks take the mean of what they take, as the template knows groups of like microbatches. This is what
/// they hold, per stage.
PipelineJob held(const costmodel::BackboneShape& backbone, const costmodel::Storage& storage,
                 std::span<const StageShape> shapes, const std::vector<std::vector<MicrobatchLoad>>& chunks) {
  PipelineJob job;
  job.chunks = static_cast<std::int32_t>(chunks.size());
  for (std::size_t s = 0; s < shapes.size(); ++s) {
    if (s > 0 && shapes[s] == shapes[s - 1]) {
      job.stash.push_back(job.stash.back());
      continue;
    }
    Bytes stash = 0;
    for (const std::vector<MicrobatchLoad>& loads : chunks) {
      for (const MicrobatchLoad& load : loads) stash += costmodel::stash_bytes(backbone, shapes[s], load, storage);
    }
    job.stash.push_back((stash + job.chunks - 1) / job.chunks);
  }
  return job;
}

LaidOutBucket lay_out(const PolicyInput& input, const FixedPlan& fixed, std::span<const std::int32_t> bucket) {
  const costmodel::BackboneShape& backbone = input.workload.backbone;
  const std::vector<StageShape> shapes = stage_shapes(fixed.deployment.front());
  LaidOutBucket laid;
  laid.clocks = clocks_of(input, fixed, bucket);
  std::vector<const MicrobatchLoad*> unlike;
  for (const auto& clock : laid.clocks) {
    laid.jobs.push_back(held(backbone, fixed.storage, shapes, clock));
    laid.chunks += static_cast<std::int64_t>(clock.size());
    for (const std::vector<MicrobatchLoad>& chunk : clock) {
      for (const MicrobatchLoad& load : chunk) {
        laid.tokens += load.tokens;
        if (unlike.empty() || !look_alike(*unlike.back(), load)) {
          unlike.push_back(&load);
        } else if (load.scored > unlike.back()->scored) {
          unlike.back() = &load;
        }
      }
    }
  }
  for (const MicrobatchLoad* load : unlike)
    laid.unlike.push_back({*load, scratch_of(backbone, shapes, *load, fixed.storage)});
  return laid;
}

}  // namespace

bool look_alike(const MicrobatchLoad& a, const MicrobatchLoad& b) {
  return a.tokens == b.tokens && a.sequences.size() == b.sequences.size() && a.tasks == b.tasks;
}

std::vector<std::vector<std::int32_t>> stage_ranks(const ReplicaShape& replica) {
  std::vector<std::vector<std::int32_t>> ranks(static_cast<std::size_t>(replica.stages()));
  std::int32_t next = 0;
  for (std::vector<std::int32_t>& stage : ranks) {
    stage.resize(static_cast<std::size_t>(replica.tp));
    std::iota(stage.begin(), stage.end(), next);
    next += replica.tp;
  }
  return ranks;
}

std::size_t LaidOutBuckets::Hash::operator()(const Key& key) const {
  std::size_t hash = key.size();
  for (const std::int64_t number : key) {
    constexpr std::size_t kOdd = 0x9E3779B97F4A7C15;
    hash = (hash ^ static_cast<std::size_t>(number)) * kOdd;
    hash ^= hash >> 29;
  }
  return hash;
}

LaidOutBucket& LaidOutBuckets::of(const PolicyInput& input, const FixedPlan& fixed,
                                  std::span<const std::int32_t> bucket) {
  Key key = {fixed.chunk_size, fixed.pack_length};
  for (const std::int32_t h : bucket) {
    key.push_back(kNone);
    for (const TaskIndex task : fixed.htasks[static_cast<std::size_t>(h)])
      key.push_back(input.kinds.empty() ? task : input.kinds[static_cast<std::size_t>(task)]);
  }
  const auto [known, is_new] = known_.try_emplace(std::move(key));
  if (is_new) known->second = lay_out(input, fixed, bucket);
  return known->second;
}

void LaidOutBuckets::time(const PolicyInput& input, LaunchRule rule, LaidOutBucket& bucket) const {
  const costmodel::CostModel& cost = input.cost();
  const ReplicaShape& replica = input.deployment.front();
  const std::vector<StageShape> shapes = stage_shapes(replica);
  const std::vector<std::vector<std::int32_t>> ranks = stage_ranks(replica);
  // Stages whose passes take the same.
  const auto like_last = [&](std::size_t s) {
    const auto links = [&](std::size_t of) { return cost.group_shape(costmodel::Operator::all_reduce, ranks[of]); };
    return s > 0 && shapes[s] == shapes[s - 1] && (shapes[s].tp == 1 || links(s) == links(s - 1));
  };
  for (std::size_t s = 0; s < shapes.size(); ++s) {
    const bool alike = like_last(s);
    for (std::size_t clock = 0; clock < bucket.jobs.size(); ++clock) {
      PipelineJob& job = bucket.jobs[clock];
      if (alike) {
        job.forward.push_back(job.forward.back());
        job.backward.push_back(job.backward.back());
        continue;
      }
      double forward = 0, backward = 0;
      for (const std::vector<MicrobatchLoad>& loads : bucket.clocks[clock]) {
        forward += input.latency.estimate(shapes[s], ranks[s], loads, Pass::forward, rule).total.seconds;
        backward += input.latency.estimate(shapes[s], ranks[s], loads, Pass::backward, rule).total.seconds;
      }
      job.forward.push_back(nanoseconds(forward / job.chunks));
      job.backward.push_back(nanoseconds(backward / job.chunks));
    }
  }
  bucket.timed = true;
  bucket.clocks = {};
}

}  // namespace braid::planner
