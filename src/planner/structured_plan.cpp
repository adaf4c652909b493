#include "planner/structured_plan.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "planner/bucket_order.h"
#include "planner/compute_orders.h"
#include "planner/window.h"

namespace braid::planner {
namespace {

using costmodel::MicrobatchLoad;
using costmodel::Pass;
using costmodel::StageShape;

constexpr std::int64_t kBucketOrders = 2000;  // most that a search tries

/// A bucket's clock: per chunk, one microbatch of each hTask that has one.
struct Clock {
  std::int32_t bucket = 0;
  std::int32_t number = 0;
  std::vector<std::vector<MicrobatchLoad>> chunks;
};

/// The clocks of every task's first global batch on the first replica, bucket by bucket.
std::vector<Clock> first_clocks(const PolicyInput& input, const FixedPlan& fixed) {
  const WindowInput window{input.workload, input.samples, {}, true};
  const PassStyle style = pass_style(fixed, input.workload);
  MicrobatchId next_id = 0;
  std::vector<Clock> clocks;
  for (std::size_t b = 0; b < fixed.buckets.size(); ++b) {
    std::vector<Clock> mine;
    for (const std::int32_t h : fixed.buckets[b]) {
      std::vector<WindowStep> steps;
      for (const TaskIndex task : fixed.htasks[static_cast<std::size_t>(h)]) steps.push_back({h, task, 0});
      const std::vector<ChunkGroup> groups = chunk_groups(fixed, window, steps, next_id).front();
      mine.resize(std::max(mine.size(), groups.size()));
      for (std::size_t g = 0; g < groups.size(); ++g) {
        mine[g].bucket = static_cast<std::int32_t>(b);
        mine[g].number = static_cast<std::int32_t>(g);
        mine[g].chunks.resize(std::max(mine[g].chunks.size(), groups[g].size()));
        for (std::size_t c = 0; c < groups[g].size(); ++c)
          mine[g].chunks[c].push_back(load_of(groups[g][c], style.adapters, style.kernels));
      }
    }
    clocks.insert(clocks.end(), mine.begin(), mine.end());
  }
  return clocks;
}

/// Ranks of each stage of the first replica, which the numbering begins with.
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

class JobMaker {
 public:
  JobMaker(const PolicyInput& input, const FixedPlan& fixed)
      : storage_(fixed.storage),
        backbone_(input.workload.backbone),
        latency_(input.latency),
        shapes_(stage_shapes(fixed.deployment.front())),
        ranks_(stage_ranks(fixed.deployment.front())) {}

  /// A clock's chunks take the mean of what they take, as the template knows groups of like microbatches. This is what
  /// they hold, per stage.
  PipelineJob held(const Clock& clock) const {
    PipelineJob job;
    job.bucket = clock.bucket;
    job.chunks = static_cast<std::int32_t>(clock.chunks.size());
    for (std::size_t s = 0; s < shapes_.size(); ++s) {
      if (s > 0 && shapes_[s] == shapes_[s - 1]) {
        job.stash.push_back(job.stash.back());
        continue;
      }
      Bytes stash = 0;
      for (const std::vector<MicrobatchLoad>& loads : clock.chunks) {
        for (const MicrobatchLoad& load : loads) stash += costmodel::stash_bytes(backbone_, shapes_[s], load, storage_);
      }
      job.stash.push_back((stash + job.chunks - 1) / job.chunks);
    }
    return job;
  }

  /// The job's times, which are dearer to come by.
  void time(const Clock& clock, PipelineJob& job) {
    for (std::size_t s = 0; s < shapes_.size(); ++s) {
      if (s > 0 && alike(s - 1, s)) {
        job.forward.push_back(job.forward.back());
        job.backward.push_back(job.backward.back());
        continue;
      }
      double forward = 0, backward = 0;
      for (const std::vector<MicrobatchLoad>& loads : clock.chunks) {
        forward += latency_.estimate(shapes_[s], ranks_[s], loads, Pass::forward).total.seconds;
        backward += latency_.estimate(shapes_[s], ranks_[s], loads, Pass::backward).total.seconds;
      }
      job.forward.push_back(nanoseconds(forward / job.chunks));
      job.backward.push_back(nanoseconds(backward / job.chunks));
    }
  }

  /// What the largest clock's messages take between two stages.
  std::vector<Nanoseconds> messages(std::span<const Clock> clocks) const {
    std::int64_t tokens = 0, count = 0;
    for (const Clock& clock : clocks) {
      for (const std::vector<MicrobatchLoad>& loads : clock.chunks) {
        ++count;
        for (const MicrobatchLoad& load : loads) tokens += load.tokens;
      }
    }
    std::vector<Nanoseconds> times;
    for (std::size_t s = 0; s + 1 < shapes_.size(); ++s) {
      const std::array ends = {ranks_[s].front(), ranks_[s + 1].front()};
      const Bytes bytes =
          tokens / std::max<std::int64_t>(count, 1) * costmodel::message_bytes_per_token(backbone_, storage_);
      const costmodel::CostModel& cost = latency_.cost();
      const costmodel::OperatorCall message{costmodel::Operator::send_recv,
                                            Pass::forward,
                                            cost.group_shape(costmodel::Operator::send_recv, ends),
                                            std::max<Bytes>(bytes, 1),
                                            0,
                                            0,
                                            1};
      times.push_back(nanoseconds(cost.estimate(message).seconds));
    }
    return times;
  }

 private:
  /// Stages whose passes take the same.
  bool alike(std::size_t a, std::size_t b) const {
    const costmodel::CostModel& cost = latency_.cost();
    const auto links = [&](std::size_t s) { return cost.group_shape(costmodel::Operator::all_reduce, ranks_[s]); };
    return shapes_[a] == shapes_[b] && (shapes_[a].tp == 1 || links(a) == links(b));
  }

  const costmodel::Storage& storage_;
  const costmodel::BackboneShape& backbone_;
  ClockLatency& latency_;
  std::vector<StageShape> shapes_;
  std::vector<std::vector<std::int32_t>> ranks_;
};

/// Microbatches of one hTask mostly need the same scratch: of neighbours that look alike the one with more loss counts.
void add_unlike(const MicrobatchLoad& load, std::vector<MicrobatchLoad>& loads) {
  const bool like_last = !loads.empty() && loads.back().tokens == load.tokens &&
                         loads.back().sequences.size() == load.sequences.size() && loads.back().tasks == load.tasks;
  if (!like_last) {
    loads.push_back(load);
  } else if (load.scored > loads.back().scored) {
    loads.back() = load;
  }
}

/// Passes of whole groups, as the chunks of one stand together.
std::vector<std::vector<TemplateSlot>> template_of(const PipelineSchedule& schedule, std::span<const Clock> clocks) {
  std::vector<std::vector<TemplateSlot>> order;
  for (const std::vector<PipelineSlot>& stage : schedule.stages) {
    std::vector<TemplateSlot>& slots = order.emplace_back();
    for (const PipelineSlot& slot : stage) {
      const Clock& clock = clocks[static_cast<std::size_t>(slot.job)];
      const bool backward = slot.pass == Kind::backward;
      const std::int32_t last = static_cast<std::int32_t>(clock.chunks.size()) - 1;
      if (slot.chunk == (backward ? last : 0)) slots.push_back({backward, clock.bucket, clock.number});
    }
  }
  return order;
}

}  // namespace

std::vector<StageShape> stage_shapes(const ReplicaShape& replica) {
  std::vector<StageShape> shapes;
  for (std::int32_t s = 0; s < replica.stages(); ++s)
    shapes.push_back({replica.layers_of(s), s == 0, s + 1 == replica.stages(), replica.tp});
  return shapes;
}

std::vector<Bytes> stash_budget(const PolicyInput& input, const costmodel::Storage& storage,
                                std::span<const MicrobatchLoad> loads) {
  const costmodel::BackboneShape& backbone = input.workload.backbone;
  std::vector<Bytes> budget;
  const std::vector<StageShape> shapes = stage_shapes(input.deployment.front());
  for (std::size_t s = 0; s < shapes.size(); ++s) {
    const StageShape& shape = shapes[s];
    if (s > 0 && shape == shapes[s - 1]) {
      budget.push_back(budget.back());
      continue;
    }
    Bytes held = costmodel::backbone_bytes(backbone, shape, storage) + storage.context;
    if (shape.tp > 1) held += costmodel::kCommunicatorBytes;
    if (input.deployment.size() > 1) held += costmodel::kCommunicatorBytes;
    for (const workload::Task& task : input.workload.tasks)
      held += costmodel::adapter_bytes(backbone, task.adapter, shape.layers);
    Bytes scratch = 0, message = 0;
    for (const MicrobatchLoad& load : loads) {
      for (const Pass pass : {Pass::forward, Pass::backward})
        scratch = std::max(scratch, costmodel::workspace_bytes(backbone, shape, load, pass, storage));
      message = std::max(message, load.tokens * costmodel::message_bytes_per_token(backbone, storage));
    }
    // Of messages: one each way that comes, is posted ahead, or leaves.
    const Bytes messages = input.deployment.front().stages() > 1 ? 4 * message : 0;
    budget.push_back(input.capacity > 0 ? input.capacity - held - scratch - messages : 0);
    if (input.capacity > 0 && budget.back() == 0) budget.back() = -1;
  }
  return budget;
}

std::optional<Nanoseconds> order_structured(const PolicyInput& input, BucketSearch search, FixedPlan& fixed) {
  const std::vector<Clock> clocks = first_clocks(input, fixed);
  std::vector<PipelineJob> jobs;
  std::vector<MicrobatchLoad> loads;
  JobMaker maker(input, fixed);
  for (const Clock& clock : clocks) {
    jobs.push_back(maker.held(clock));
    for (const std::vector<MicrobatchLoad>& chunk : clock.chunks) {
      for (const MicrobatchLoad& load : chunk) add_unlike(load, loads);
    }
  }
  const std::vector<Bytes> budget = stash_budget(input, fixed.storage, loads);
  for (std::size_t s = 0; s < budget.size(); ++s) {
    if (budget[s] < 0) return std::nullopt;
    for (const PipelineJob& job : jobs) {
      if (budget[s] > 0 && job.chunks * job.stash[s] > budget[s]) return std::nullopt;
    }
  }
  for (std::size_t i = 0; i < jobs.size(); ++i) maker.time(clocks[i], jobs[i]);
  const TemplateRules rules;
  PipelineSimulator simulator(jobs, fixed.deployment.front().stages(), budget, maker.messages(clocks));
  const std::vector<std::int32_t> buckets = search == BucketSearch::searched
                                                ? search_bucket_order(simulator, rules, kBucketOrders).buckets
                                                : simulator.bucket_order(rules);
  const PipelineSchedule schedule = simulator.schedule(simulator.job_order(buckets, rules), rules);
  fixed.pipeline = PipelineTemplate::structured;
  fixed.order = template_of(schedule, clocks);
  return schedule.makespan;
}

}  // namespace braid::planner
