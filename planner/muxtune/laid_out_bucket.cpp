#include "planner/muxtune/laid_out_bucket.h"

#include <algorithm>
#include <numeric>

#include "base/mixed_hash.h"
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

/// What a clock's chunks hold, per stage the mean; without their times.
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
  MixedHash hash(std::ssize(key));
  for (const std::int64_t number : key) hash.add(number);
  return hash.value();
}

LaidOutBucket& LaidOutBuckets::of(const PolicyInput& input, const FixedPlan& fixed,
                                  std::span<const std::int32_t> bucket) {
  Key key = {fixed.batching.chunk_size, fixed.batching.pack_length};
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
  // Whether a stage's passes take what the one before it takes.
  std::vector<bool> alike;
  for (std::size_t s = 0; s < shapes.size(); ++s) {
    const auto links = [&](std::size_t of) { return cost.group_shape(costmodel::Operator::all_reduce, ranks[of]); };
    alike.push_back(s > 0 && shapes[s] == shapes[s - 1] && (shapes[s].tp == 1 || links(s) == links(s - 1)));
  }
  for (std::size_t clock = 0; clock < bucket.jobs.size(); ++clock) {
    PipelineJob& job = bucket.jobs[clock];
    if (clock > 0 && bucket.clocks[clock] == bucket.clocks[clock - 1]) {
      job.forward = bucket.jobs[clock - 1].forward;
      job.backward = bucket.jobs[clock - 1].backward;
      continue;
    }
    for (const std::vector<MicrobatchLoad>& loads : bucket.clocks[clock]) {
      for (std::size_t s = 0; s < shapes.size(); ++s) {
        if (alike[s]) {
          job.forward.push_back(job.forward.back());
          job.backward.push_back(job.backward.back());
          continue;
        }
        const auto pass = [&](Pass which) {
          return nanoseconds(input.latency.estimate(shapes[s], ranks[s], loads, which, rule).total.seconds);
        };
        job.forward.push_back(pass(Pass::forward));
        job.backward.push_back(pass(Pass::backward));
      }
    }
  }
  bucket.timed = true;
  bucket.clocks = {};
}

}  // namespace braid::planner
