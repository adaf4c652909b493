#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "base/random.h"
#include "planner/pipeline_orders.h"

// Random instances of the pipeline template, and what its rules are worth on them.
namespace braid::planner::testing {

/// Buckets as MuxTune describes them: microbatches of one bucket are alike, forward and backward passes take the same.
struct StudyShape {
  int stages = 4;
  int buckets = 6;
  int most_jobs = 8;          ///< of a bucket, at least 1
  double spread = 4;          ///< longest possible microbatch / shortest possible
  double unevenness = 0;      ///< a stage's share varies by up to this, upwards; 0: all stages alike
  std::int32_t chunks = 1;    ///< largest chunk group
  double chunk_spread = 1;    ///< longest possible chunk of a group / shortest possible
  double memory = 0;          ///< per stage, in groups of the largest need; 0: no limit
  double message = 0;         ///< in shortest possible microbatches
  double backward_ratio = 1;  ///< backward / forward
};

/// Each chunk of the group longer or shorter than they all were.
inline void spread_chunks(double spread, RandomStream& random, PipelineJob& job) {
  const PipelineJob alike = job;
  job.forward.clear(), job.backward.clear();
  for (std::int32_t chunk = 0; chunk < job.chunks; ++chunk) {
    const double share = std::pow(spread, random.next_uniform());
    for (const Nanoseconds time : alike.forward) job.forward.push_back(std::llround(static_cast<double>(time) * share));
    for (const Nanoseconds time : alike.backward)
      job.backward.push_back(std::llround(static_cast<double>(time) * share));
  }
}

inline PipelineInstance random_instance(const StudyShape& shape, RandomStream& random) {
  constexpr double kShortest = 1000;
  PipelineInstance instance;
  instance.stages = shape.stages;
  std::vector<double> shares;
  for (int s = 0; s < shape.stages; ++s) shares.push_back(1 + shape.unevenness * random.next_uniform());
  Bytes largest = 0;
  for (int b = 0; b < shape.buckets; ++b) {
    PipelineJob job;
    job.bucket = b;
    const double latency = kShortest * std::pow(shape.spread, random.next_uniform());
    for (const double share : shares) {
      job.forward.push_back(std::llround(latency * share));
      job.backward.push_back(std::llround(latency * share * shape.backward_ratio));
      job.stash.push_back(std::llround(latency));
    }
    const auto count = 1 + random.next_below(static_cast<std::uint64_t>(shape.most_jobs));
    for (std::uint64_t j = 0; j < count; ++j) {
      job.chunks = 1 + static_cast<std::int32_t>(random.next_below(static_cast<std::uint64_t>(shape.chunks)));
      largest = std::max(largest, job.chunks * job.stash[0]);
      instance.jobs.push_back(job);
      if (shape.chunk_spread > 1 && job.chunks > 1) spread_chunks(shape.chunk_spread, random, instance.jobs.back());
    }
  }
  const auto memory = static_cast<Bytes>(std::ceil(shape.memory * static_cast<double>(largest)));
  instance.memory.assign(static_cast<std::size_t>(shape.stages), memory);
  instance.messages.assign(static_cast<std::size_t>(shape.stages - 1), std::llround(kShortest * shape.message));
  return instance;
}

/// Buckets of equal stages, microbatches of `latencies[b]` nanoseconds each way, `counts[b]` of them.
inline PipelineInstance even_buckets(int stages, const std::vector<Nanoseconds>& latencies,
                                     const std::vector<int>& counts) {
  PipelineInstance instance;
  instance.stages = stages;
  const auto count = static_cast<std::size_t>(stages);
  for (std::size_t b = 0; b < latencies.size(); ++b) {
    const std::vector<Nanoseconds> times(count, latencies[b]);
    const PipelineJob job{static_cast<std::int32_t>(b), 1, times, times, std::vector<Bytes>(count, 1)};
    instance.jobs.insert(instance.jobs.end(), static_cast<std::size_t>(counts[b]), job);
  }
  return instance;
}

/// Ratios over many instances.
struct Ratios {
  double mean = 0, least = std::numeric_limits<double>::infinity(), most = 0;
  int count = 0;

  void add(double ratio) {
    mean += (ratio - mean) / ++count;
    least = std::min(least, ratio);
    most = std::max(most, ratio);
  }
};

/// For each rule, makespan without it / makespan with all of them: above 1, the rule helps.
struct RuleEffects {
  Ratios descending, consecutive, eager, backward_first;
  Ratios plain_1f1b;  ///< without rules 1 to 3: one microbatch of each bucket in turn, in flight as 1F1B has them
  Ratios bound;       ///< makespan with all rules / busiest_stage_bound
};

/// No schedule is faster: a stage works through all its passes, after the first job has come down to it and before the
/// last one is back at the first stage.
inline Nanoseconds busiest_stage_bound(const PipelineInstance& instance) {
  Nanoseconds bound = 0;
  for (std::size_t s = 0; s < static_cast<std::size_t>(instance.stages); ++s) {
    Nanoseconds work = 0;
    Nanoseconds before = std::numeric_limits<Nanoseconds>::max(), after = before;
    for (const PipelineJob& job : instance.jobs) {
      Nanoseconds up = 0, down = 0;
      for (std::size_t k = 0; k < s; ++k) {
        const Nanoseconds message = instance.messages.empty() ? 0 : instance.messages[k];
        up += job.forward[k] + message;
        down += job.backward[k] + message;
      }
      work += job.work(s);
      before = std::min(before, up);
      after = std::min(after, down);
    }
    if (!instance.jobs.empty()) bound = std::max(bound, before + work + after);
  }
  return bound;
}

inline RuleEffects study_rules(const StudyShape& shape, int instances, std::uint64_t seed) {
  RandomStream random(seed);
  RuleEffects effects;
  for (int i = 0; i < instances; ++i) {
    const PipelineInstance instance = random_instance(shape, random);
    const auto makespan = [&](const TemplateRules& rules) {
      return static_cast<double>(
          pipeline_makespan(instance.jobs, instance.stages, instance.memory, instance.messages, rules));
    };
    const double full = makespan({});
    effects.descending.add(makespan({.descending = false}) / full);
    effects.consecutive.add(makespan({.consecutive = false}) / full);
    effects.eager.add(makespan({.eager = false}) / full);
    effects.backward_first.add(makespan({.backward_first = false}) / full);
    effects.plain_1f1b.add(makespan({.descending = false, .consecutive = false, .eager = false}) / full);
    effects.bound.add(full / static_cast<double>(busiest_stage_bound(instance)));
  }
  return effects;
}

}  // namespace braid::planner::testing
