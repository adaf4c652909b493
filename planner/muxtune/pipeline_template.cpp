#include "planner/muxtune/pipeline_template.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "base/error.h"

namespace braid::planner {
namespace {

constexpr Nanoseconds kNever = std::numeric_limits<Nanoseconds>::max();

bool none_negative(std::span<const std::int64_t> values) {
  return std::all_of(values.begin(), values.end(), [](std::int64_t value) { return value >= 0; });
}

}  // namespace

Nanoseconds PipelineJob::work(std::size_t stage) const {
  Nanoseconds work = 0;
  for (std::int32_t chunk = 0; chunk < chunks; ++chunk)
    work += time(Kind::forward, chunk, stage) + time(Kind::backward, chunk, stage);
  return work;
}

PipelineSimulator::PipelineSimulator(std::span<const PipelineJob> jobs, int stages, std::span<const Bytes> memory,
                                     std::span<const Nanoseconds> messages)
    : count_(static_cast<std::size_t>(stages)),
      messages_(messages.begin(), messages.end()),
      memory_(memory.begin(), memory.end()) {
  BRAID_CHECK(stages >= 1, "a pipeline of {} stages", stages);
  if (memory.empty()) memory_.assign(count_, 0);
  if (messages.empty()) messages_.assign(count_ - 1, 0);
  BRAID_CHECK(memory_.size() == count_, "memory of {} stages for {}", memory_.size(), stages);
  BRAID_CHECK(messages_.size() == count_ - 1, "{} messages between {} stages", messages_.size(), stages);
  BRAID_CHECK(none_negative(memory_) && none_negative(messages_), "negative memory or messages");
  need_.reserve(jobs.size() * count_);
  chunks_.reserve(jobs.size());
  for (const PipelineJob& job : jobs) check_and_flatten(job);
  number_buckets(jobs);
  next_start_.resize(count_);
  activation_arrival_.resize(count_ * microbatches_);
  gradient_arrival_.resize(count_ * microbatches_);
}

void PipelineSimulator::check_and_flatten(const PipelineJob& job) {
  BRAID_CHECK(job.chunks >= 1, "a group of {} microbatches", job.chunks);
  const auto times = [&](const std::vector<Nanoseconds>& given) {
    return given.size() == count_ || given.size() == count_ * static_cast<std::size_t>(job.chunks);
  };
  BRAID_CHECK(times(job.forward) && times(job.backward) && job.stash.size() == count_,
              "a job of {} microbatches with {}, {} and {} entries for {} stages", job.chunks, job.forward.size(),
              job.backward.size(), job.stash.size(), count_);
  BRAID_CHECK(none_negative(job.forward) && none_negative(job.backward) && none_negative(job.stash),
              "a job of bucket {} with a negative time or stash", job.bucket);
  for (std::size_t s = 0; s < count_; ++s) {
    const Bytes need = job.chunks * job.stash[s];
    if (memory_[s] > 0 && need > memory_[s]) {
      throw error(
          "bucket {}: {} microbatches that go together hold {} on stage {}, which has {}; "
          "give smaller microbatches or more stages",
          job.bucket, job.chunks, describe_bytes(need), s, describe_bytes(memory_[s]));
    }
    need_.push_back(need);
  }
  for (std::int32_t chunk = 0; chunk < job.chunks; ++chunk) {
    for (std::size_t s = 0; s < count_; ++s) {
      forward_.push_back(job.time(Kind::forward, chunk, s));
      backward_.push_back(job.time(Kind::backward, chunk, s));
    }
  }
  chunks_.push_back(job.chunks);
  first_.push_back(microbatches_);
  microbatches_ += static_cast<std::size_t>(job.chunks);
}

void PipelineSimulator::number_buckets(std::span<const PipelineJob> jobs) {
  std::vector<std::int32_t> by_bucket(jobs.size());
  std::iota(by_bucket.begin(), by_bucket.end(), 0);
  const auto bucket = [&](std::int32_t job) { return jobs[static_cast<std::size_t>(job)].bucket; };
  std::stable_sort(by_bucket.begin(), by_bucket.end(),
                   [&](std::int32_t a, std::int32_t b) { return bucket(a) < bucket(b); });
  for (auto first = by_bucket.begin(); first != by_bucket.end();) {
    const auto last = std::find_if(first, by_bucket.end(), [&](std::int32_t j) { return bucket(j) != bucket(*first); });
    buckets_.emplace_back(first, last);
    first = last;
  }
  std::sort(buckets_.begin(), buckets_.end(), [](const auto& a, const auto& b) { return a.front() < b.front(); });
  for (const std::vector<std::int32_t>& members : buckets_) {
    Nanoseconds longest = 0;
    for (const std::int32_t job : members) {
      const std::int32_t chunks = chunks_[static_cast<std::size_t>(job)];
      Nanoseconds group = 0;
      for (std::int32_t chunk = 0; chunk < chunks; ++chunk) group += forward_[at(job, chunk, 0)];
      longest = std::max(longest, group / chunks);
    }
    bucket_latency_.push_back(longest);
  }
}

std::vector<std::int32_t> PipelineSimulator::bucket_order(const TemplateRules& rules) const {
  std::vector<std::int32_t> order(buckets_.size());
  std::iota(order.begin(), order.end(), 0);
  if (!rules.descending) return order;
  const auto latency = [&](std::int32_t b) { return bucket_latency_[static_cast<std::size_t>(b)]; };
  std::stable_sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) { return latency(a) > latency(b); });
  return order;
}

std::vector<std::int32_t> PipelineSimulator::job_order(std::span<const std::int32_t> buckets,
                                                       const TemplateRules& rules) const {
  std::vector<std::int32_t> order;
  order.reserve(chunks_.size());
  const auto members = [&](std::int32_t b) -> const auto& {
    return buckets_[static_cast<std::size_t>(b)];
  };
  if (rules.consecutive) {
    for (const std::int32_t b : buckets) order.insert(order.end(), members(b).begin(), members(b).end());
    return order;
  }
  for (std::size_t turn = 0; order.size() < chunks_.size(); ++turn) {
    const std::size_t before = order.size();
    for (const std::int32_t b : buckets) {
      if (turn < members(b).size()) order.push_back(members(b)[turn]);
    }
    BRAID_CHECK(order.size() > before, "an order of {} buckets that leaves some out", buckets.size());
  }
  return order;
}

void PipelineSimulator::check_order(std::span<const std::int32_t> order) {
  BRAID_CHECK(order.size() == chunks_.size(), "an order of {} jobs for {}", order.size(), chunks_.size());
  seen_.assign(order.size(), 0);
  for (const std::int32_t job : order) {
    BRAID_CHECK(job >= 0 && static_cast<std::size_t>(job) < seen_.size(), "an order with job {}", job);
    BRAID_CHECK(!seen_[static_cast<std::size_t>(job)], "an order with job {} twice", job);
    seen_[static_cast<std::size_t>(job)] = 1;
  }
}

Nanoseconds PipelineSimulator::makespan(std::span<const std::int32_t> order, const TemplateRules& rules) {
  return run<false>(order, rules, nullptr);
}

PipelineSchedule PipelineSimulator::schedule(std::span<const std::int32_t> order, const TemplateRules& rules) {
  PipelineSchedule result;
  result.stages.resize(count_);
  for (std::vector<PipelineSlot>& slots : result.stages) slots.reserve(2 * microbatches_);
  result.makespan = run<true>(order, rules, &result);
  return result;
}

/// The passes of all stages begin in the order of their times. Whatever is ready at a time is then known: it was begun
/// at an earlier time by its sender, unless it takes no time at all.
template <bool kRecord>
Nanoseconds PipelineSimulator::run(std::span<const std::int32_t> order, const TemplateRules& rules,
                                   PipelineSchedule* recorded) {
  check_order(order);
  stages_.assign(count_, Stage{});
  for (std::size_t s = 0; s < count_; ++s) decide(s, order, rules);
  for (std::size_t left = 2 * microbatches_ * count_; left > 0; --left) {
    const auto earliest = std::min_element(next_start_.begin(), next_start_.end());
    BRAID_CHECK(*earliest != kNever, "a pipeline template waits for itself with {} passes left", left);
    const auto s = static_cast<std::size_t>(earliest - next_start_.begin());
    const bool forward = stages_[s].next_is_forward;
    const Place& place = forward ? stages_[s].forward : stages_[s].backward;
    const std::int32_t job = order[static_cast<std::size_t>(place.position)];
    const std::int32_t chunk = forward ? place.chunk : chunks_[static_cast<std::size_t>(job)] - 1 - place.chunk;
    if constexpr (kRecord)
      recorded->stages[s].push_back({forward ? Kind::forward : Kind::backward, job, chunk, *earliest});
    if (forward) {
      begin_forward(s, job, chunk);
      if (s + 1 < count_) decide(s + 1, order, rules);
    } else {
      begin_backward(s, job, chunk);
      if (s > 0) decide(s - 1, order, rules);
    }
    decide(s, order, rules);
  }
  return chunks_.empty() ? 0 : stages_[0].free_at;
}

void PipelineSimulator::decide(std::size_t s, std::span<const std::int32_t> order, const TemplateRules& rules) {
  Stage& stage = stages_[s];
  const Nanoseconds forward = forward_ready(s, order, rules.eager);
  const Nanoseconds backward = backward_ready(s, order.size());
  stage.next_is_forward = forward < backward || (forward == backward && !rules.backward_first);
  next_start_[s] = std::min(forward, backward);
}

/// When the stage's next forward pass could begin as far as is known, never earlier than the stage is free.
Nanoseconds PipelineSimulator::forward_ready(std::size_t s, std::span<const std::int32_t> order, bool eager) const {
  const Stage& stage = stages_[s];
  const Place& next = stage.forward;
  if (static_cast<std::size_t>(next.position) == order.size() || stage.backward.chunk > 0) return kNever;
  if (next.chunk == 0) {
    const auto in_flight = static_cast<std::size_t>(next.position - stage.backward.position);
    if (!eager && in_flight >= count_ - s) return kNever;
    const Bytes need = need_[at(order[static_cast<std::size_t>(next.position)], s)];
    if (memory_[s] > 0 && stage.held + need > memory_[s]) return kNever;
  }
  if (s == 0) return stage.free_at;
  if (next.passes == stages_[s - 1].forward.passes) return kNever;
  return std::max(stage.free_at, activation_arrival_[s * microbatches_ + static_cast<std::size_t>(next.passes)]);
}

Nanoseconds PipelineSimulator::backward_ready(std::size_t s, std::size_t jobs) const {
  const Stage& stage = stages_[s];
  const Place& next = stage.backward;
  if (static_cast<std::size_t>(next.position) == jobs || stage.forward.chunk > 0) return kNever;
  if (s + 1 == count_) return next.position < stage.forward.position ? stage.free_at : kNever;
  if (next.passes == stages_[s + 1].backward.passes) return kNever;
  return std::max(stage.free_at, gradient_arrival_[s * microbatches_ + static_cast<std::size_t>(next.passes)]);
}

void PipelineSimulator::begin_forward(std::size_t s, std::int32_t job, std::int32_t chunk) {
  Stage& stage = stages_[s];
  stage.free_at = next_start_[s] + forward_[at(job, chunk, s)];
  if (stage.forward.chunk == 0) stage.held += need_[at(job, s)];
  if (s + 1 < count_) {
    const std::size_t input = (s + 1) * microbatches_ + static_cast<std::size_t>(stage.forward.passes);
    const Nanoseconds link_free = stage.forward.passes > 0 ? activation_arrival_[input - 1] : 0;
    activation_arrival_[input] = std::max(stage.free_at, link_free) + messages_[s];
  }
  advance(stage.forward, job);
}

void PipelineSimulator::begin_backward(std::size_t s, std::int32_t job, std::int32_t chunk) {
  Stage& stage = stages_[s];
  stage.free_at = next_start_[s] + backward_[at(job, chunk, s)];
  if (s > 0) {
    const std::size_t input = (s - 1) * microbatches_ + static_cast<std::size_t>(stage.backward.passes);
    const Nanoseconds link_free = stage.backward.passes > 0 ? gradient_arrival_[input - 1] : 0;
    gradient_arrival_[input] = std::max(stage.free_at, link_free) + messages_[s - 1];
  }
  advance(stage.backward, job);
  // Nothing else begins on the stage before the group has ended, so its memory may go in one piece.
  if (stage.backward.chunk == 0) stage.held -= need_[at(job, s)];
}

void PipelineSimulator::advance(Place& place, std::int32_t job) const {
  ++place.passes;
  if (++place.chunk == chunks_[static_cast<std::size_t>(job)]) {
    place.chunk = 0;
    ++place.position;
  }
}

PipelineSchedule schedule_pipeline(std::span<const PipelineJob> jobs, int stages, std::span<const Bytes> memory,
                                   std::span<const Nanoseconds> messages, const TemplateRules& rules) {
  PipelineSimulator simulator(jobs, stages, memory, messages);
  return simulator.schedule(simulator.job_order(simulator.bucket_order(rules), rules), rules);
}

Nanoseconds pipeline_makespan(std::span<const PipelineJob> jobs, int stages, std::span<const Bytes> memory,
                              std::span<const Nanoseconds> messages, const TemplateRules& rules) {
  PipelineSimulator simulator(jobs, stages, memory, messages);
  return simulator.makespan(simulator.job_order(simulator.bucket_order(rules), rules), rules);
}

}  // namespace braid::planner
