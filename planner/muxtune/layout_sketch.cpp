#include "planner/muxtune/layout_sketch.h"

#include <algorithm>
#include <array>

#include "planner/muxtune/pipeline_template.h"

namespace braid::planner {
using costmodel::Pass;

LayoutSketch::LayoutSketch(const PolicyInput& input, const FixedPlan& fixed,
                           std::span<const costmodel::StageShape> stages,
                           std::span<const costmodel::MicrobatchLoad> loads, const RunCosts& costs)
    : input_(input),
      fixed_(fixed),
      stages_(stages),
      costs_(costs),
      clocks_(input, stages, loads, costs),
      end_(input, stages.front()) {
  for (const costmodel::MicrobatchLoad& load : loads) tokens_ += load.tokens;
}

double LayoutSketch::busiest_stage_seconds(const FusedTasks& partition) const {
  double busiest = 0;
  for (std::size_t s = 0; s < stages_.size(); ++s) {
    if (clocks_.first_alike(s) != s) continue;
    double busy = 0;
    for (const TaskRun& run : partition.htasks)
      busy += static_cast<double>(costs_.microbatches(run)) * costs_.seconds(s, run);
    busiest = std::max(busiest, busy);
  }
  return busiest;
}

std::vector<LayoutSketch::BucketClocks> LayoutSketch::clocks(const FusedTasks& partition, const Buckets& buckets) {
  std::vector<BucketClocks> clocks(buckets.size());
  std::vector<TaskRun> runs;
  for (std::size_t b = 0; b < buckets.size(); ++b) {
    runs.clear();
    for (const std::int32_t h : buckets[b]) runs.push_back(partition.htasks[static_cast<std::size_t>(h)]);
    clocks[b].count = clocks_.clocks_of(runs);
    std::vector<double>&forward = clocks[b].forward, &backward = clocks[b].backward;
    forward.reserve(stages_.size()), backward.reserve(stages_.size());
    for (std::size_t s = 0; s < stages_.size(); ++s) {
      const std::size_t like = clocks_.first_alike(s);
      forward.push_back(like < s ? forward[like] : clocks_.seconds(s, runs, Pass::forward));
      backward.push_back(like < s ? backward[like] : clocks_.seconds(s, runs, Pass::backward));
    }
  }
  return clocks;
}

double LayoutSketch::busiest_stage_seconds(std::span<const BucketClocks> buckets) const {
  double busiest = 0;
  std::vector<double> forward(buckets.size(), 0), backward(buckets.size(), 0);  // through the stages below
  std::size_t first = 0;
  for (std::size_t s = 0; s < stages_.size(); ++s) {
    double busy = 0;
    const double filled = forward[first], drained = *std::min_element(backward.begin(), backward.end());
    for (std::size_t b = 0; b < buckets.size(); ++b) {
      const double up = buckets[b].forward[s], down = buckets[b].backward[s];
      busy += static_cast<double>(buckets[b].count) * (up + down);
      forward[b] += up, backward[b] += down;
    }
    busiest = std::max(busiest, filled + busy + drained);
    if (s == 0) first = static_cast<std::size_t>(std::max_element(forward.begin(), forward.end()) - forward.begin());
  }
  return busiest;
}

Nanoseconds LayoutSketch::step(std::span<const BucketClocks> buckets) const {
  const auto bucket_count = static_cast<Nanoseconds>(buckets.size());
  if (stages_.size() == 1) {
    // A pipeline of one stage has something to do until it ends.
    Nanoseconds busy = 0;
    for (const BucketClocks& bucket : buckets)
      busy += bucket.count * (nanoseconds(bucket.forward.front()) + nanoseconds(bucket.backward.front()));
    return end_.after(busy, bucket_count);
  }
  std::vector<PipelineJob> jobs;
  for (std::size_t b = 0; b < buckets.size(); ++b) {
    PipelineJob job;
    job.bucket = static_cast<std::int32_t>(b);
    for (const double time : buckets[b].forward) job.forward.push_back(nanoseconds(time));
    for (const double time : buckets[b].backward) job.backward.push_back(nanoseconds(time));
    job.stash.assign(stages_.size(), 0);
    jobs.insert(jobs.end(), static_cast<std::size_t>(buckets[b].count), job);
  }
  const std::vector<Nanoseconds> messages(stages_.size() - 1, message_time(jobs.size()));
  const Nanoseconds makespan = pipeline_makespan(jobs, static_cast<int>(stages_.size()), {}, messages, {});
  return end_.after(makespan, bucket_count);
}

/// A mean clock's message between the first two stages.
Nanoseconds LayoutSketch::message_time(std::size_t clocks) const {
  if (stages_.size() < 2) return 0;
  const std::array ends = {std::int32_t{0}, input_.deployment.front().tp};
  const Bytes bytes = tokens_ * input_.microbatches / static_cast<std::int64_t>(clocks) *
                      costmodel::message_bytes_per_token(input_.workload.backbone, fixed_.storage);
  if (bytes <= 0) return 0;
  const costmodel::CostModel& cost = input_.cost();
  const costmodel::OperatorShape link = cost.group_shape(costmodel::Operator::send_recv, ends);
  return nanoseconds(cost.estimate({costmodel::Operator::send_recv, Pass::forward, link, bytes, 0, 0, 1}).seconds);
}

}  // namespace braid::planner
