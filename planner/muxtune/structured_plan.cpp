#include "planner/muxtune/structured_plan.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "planner/muxtune/bucket_order.h"

namespace braid::planner {
namespace {

using costmodel::Operator;
using costmodel::Pass;

constexpr std::int64_t kBucketOrders = 2000;  // most that a search tries

/// A plan's buckets, and which of them each job is of.
class StructuredBuckets {
 public:
  StructuredBuckets(const PolicyInput& input, const FixedPlan& fixed, LaidOutBuckets& laid_out)
      : input_(input), fixed_(fixed), laid_out_(laid_out) {
    for (const std::vector<std::int32_t>& bucket : fixed.buckets)
      buckets_.push_back(&laid_out.of(input, fixed, bucket));
  }

  /// Of neighbours that look alike the one with more loss counts, whatever buckets they are in.
  std::vector<Bytes> budget() const {
    std::vector<Bytes> most(stages(), 0);
    std::int64_t tokens = 0;
    const LaidOutBucket::Microbatches* last = nullptr;
    const auto count = [&] {
      if (!last) return;
      for (std::size_t s = 0; s < most.size(); ++s) most[s] = std::max(most[s], last->scratch[s]);
      tokens = std::max(tokens, last->load.tokens);
    };
    for (const LaidOutBucket* bucket : buckets_) {
      for (const LaidOutBucket::Microbatches& microbatches : bucket->unlike) {
        if (last && look_alike(last->load, microbatches.load)) {
          if (microbatches.load.scored > last->load.scored) last = &microbatches;
          continue;
        }
        count();
        last = &microbatches;
      }
    }
    count();
    const Bytes message = tokens * costmodel::message_bytes_per_token(input_.workload.backbone, fixed_.storage);
    return StashBudget(input_, fixed_.storage).with(most, message);
  }

  bool fit(std::span<const Bytes> budget) const {
    for (std::size_t s = 0; s < budget.size(); ++s) {
      if (budget[s] < 0) return false;
      for (const LaidOutBucket* bucket : buckets_) {
        for (const PipelineJob& job : bucket->jobs) {
          if (budget[s] > 0 && job.chunks * job.stash[s] > budget[s]) return false;
        }
      }
    }
    return true;
  }

  bool timed() const {
    return std::all_of(buckets_.begin(), buckets_.end(), [](const LaidOutBucket* bucket) { return bucket->timed; });
  }
  void time() {
    for (LaidOutBucket* bucket : buckets_) {
      if (!bucket->timed) laid_out_.time(input_, fixed_.schedule.launch_rule, *bucket);
    }
  }

  /// What no order is faster than: a stage's work, after the shortest way forward and before the shortest way back
  /// through the stages below.
  Nanoseconds least_makespan() const {
    constexpr Nanoseconds kMost = std::numeric_limits<Nanoseconds>::max();
    Nanoseconds least = 0;
    for (std::size_t s = 0; s < stages(); ++s) {
      Nanoseconds busy = 0, filled = kMost, drained = kMost;
      for (const LaidOutBucket* bucket : buckets_) {
        for (const PipelineJob& job : bucket->jobs) {
          busy += job.work(s);
          // A group's first microbatch is the first to go forward and the last to go backward.
          const auto below = static_cast<std::ptrdiff_t>(s);
          filled = std::min(filled, std::accumulate(job.forward.begin(), job.forward.begin() + below, Nanoseconds{0}));
          drained =
              std::min(drained, std::accumulate(job.backward.begin(), job.backward.begin() + below, Nanoseconds{0}));
        }
      }
      if (busy > 0) least = std::max(least, filled + busy + drained);
    }
    return least;
  }

  std::vector<PipelineJob> jobs() const {
    std::vector<PipelineJob> jobs;
    for (std::size_t b = 0; b < buckets_.size(); ++b) {
      for (const PipelineJob& job : buckets_[b]->jobs) {
        jobs.push_back(job);
        jobs.back().bucket = static_cast<std::int32_t>(b);
      }
    }
    return jobs;
  }

  /// What the mean chunk's messages take between two stages.
  std::vector<Nanoseconds> messages() const {
    std::int64_t tokens = 0, chunks = 0;
    for (const LaidOutBucket* bucket : buckets_) tokens += bucket->tokens, chunks += bucket->chunks;
    const Bytes bytes = tokens / std::max<std::int64_t>(chunks, 1) *
                        costmodel::message_bytes_per_token(input_.workload.backbone, fixed_.storage);
    const costmodel::CostModel& cost = input_.cost();
    const std::int32_t tp = fixed_.deployment.front().tp;
    std::vector<Nanoseconds> times;
    for (std::int32_t s = 0; s + 1 < fixed_.deployment.front().stages(); ++s) {
      const std::array ends = {s * tp, (s + 1) * tp};
      const costmodel::OperatorCall message{Operator::send_recv,
                                            Pass::forward,
                                            cost.group_shape(Operator::send_recv, ends),
                                            std::max<Bytes>(bytes, 1),
                                            0,
                                            0,
                                            1};
      times.push_back(nanoseconds(cost.estimate(message).seconds));
    }
    return times;
  }

 private:
  std::size_t stages() const { return static_cast<std::size_t>(fixed_.deployment.front().stages()); }

  const PolicyInput& input_;
  const FixedPlan& fixed_;
  LaidOutBuckets& laid_out_;
  std::vector<LaidOutBucket*> buckets_;
};

/// Passes of whole groups, as the chunks of one stand together.
std::vector<std::vector<TemplateSlot>> template_of(const PipelineSchedule& schedule,
                                                   std::span<const PipelineJob> jobs) {
  std::vector<std::int32_t> numbers;  // per job, which of its bucket's clocks it is
  for (std::size_t job = 0; job < jobs.size(); ++job)
    numbers.push_back(job > 0 && jobs[job].bucket == jobs[job - 1].bucket ? numbers.back() + 1 : 0);
  std::vector<std::vector<TemplateSlot>> order;
  for (const std::vector<PipelineSlot>& stage : schedule.stages) {
    std::vector<TemplateSlot>& slots = order.emplace_back();
    for (const PipelineSlot& slot : stage) {
      const auto job = static_cast<std::size_t>(slot.job);
      const bool backward = slot.pass == Kind::backward;
      if (slot.chunk == (backward ? jobs[job].chunks - 1 : 0))
        slots.push_back({backward, jobs[job].bucket, numbers[job]});
    }
  }
  return order;
}

}  // namespace

std::optional<Nanoseconds> order_structured(const PolicyInput& input, BucketSearch search, LaidOutBuckets& laid_out,
                                            FixedPlan& fixed, Nanoseconds limit) {
  StructuredBuckets laid(input, fixed, laid_out);
  if (laid.timed() && laid.least_makespan() >= limit) return std::nullopt;
  const std::vector<Bytes> budget = laid.budget();
  if (!laid.fit(budget)) return std::nullopt;
  laid.time();
  if (laid.least_makespan() >= limit) return std::nullopt;
  const std::vector<PipelineJob> jobs = laid.jobs();
  const TemplateRules rules;
  PipelineSimulator simulator(jobs, fixed.deployment.front().stages(), budget, laid.messages());
  const std::vector<std::int32_t> buckets = search == BucketSearch::searched
                                                ? search_bucket_order(simulator, rules, kBucketOrders).buckets
                                                : simulator.bucket_order(rules);
  const PipelineSchedule schedule = simulator.schedule(simulator.job_order(buckets, rules), rules);
  fixed.schedule.pipeline = PipelineTemplate::structured;
  fixed.schedule.order = template_of(schedule, jobs);
  return schedule.makespan;
}

}  // namespace braid::planner
