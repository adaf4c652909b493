#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/units.h"
#include "planner/program/program.h"

namespace braid::planner {

/// A chunk group: microbatches that go through the pipeline together because samples span them. They go forward one
/// after another and backward in reverse, on every stage with nothing between them. Mostly a group of one.
struct PipelineJob {
  std::int32_t bucket = 0;
  std::int32_t chunks = 1;  ///< microbatches of the group
  // Per stage, of any microbatch of the group; or of all stages microbatch by microbatch, where they are unlike.
  std::vector<Nanoseconds> forward;
  std::vector<Nanoseconds> backward;
  std::vector<Bytes> stash;  ///< per stage, held from a microbatch's forward to its backward, the mean of the group

  Nanoseconds time(Kind pass, std::int32_t chunk, std::size_t stage) const {
    const std::vector<Nanoseconds>& times = pass == Kind::forward ? forward : backward;
    const std::size_t stages = stash.size();
    return times[times.size() == stages ? stage : static_cast<std::size_t>(chunk) * stages + stage];
  }
  /// What a stage takes for the whole group, both ways.
  Nanoseconds work(std::size_t stage) const;
};

/// MuxTune's rules for a pipeline of several buckets (section 3.4.1, "Structured Pipeline Template").
struct TemplateRules {
  bool descending = true;   ///< rule 1: buckets by first-stage forward latency, longest first; else in the order given
  bool consecutive = true;  ///< rule 2: jobs of one bucket together; else one of each bucket in turn
  bool eager = true;        ///< rule 3: as far ahead as memory allows; else `stages - stage` jobs in flight (1F1B)
  bool backward_first = true;  ///< a ready backward pass goes before a ready forward pass; else after it
};

/// One pass of a stage's compute order.
struct PipelineSlot {
  Kind pass = Kind::forward;  ///< forward or backward
  std::int32_t job = 0;       ///< into the jobs given
  std::int32_t chunk = 0;     ///< the microbatch's place in its group
  Nanoseconds start = 0;
  bool operator==(const PipelineSlot&) const = default;
};

struct PipelineSchedule {
  std::vector<std::vector<PipelineSlot>> stages;  ///< per stage, in compute order
  Nanoseconds makespan = 0;                       ///< from the first forward's start to the last backward's end
};

/// Lays jobs out over the stages of a pipeline that starts and ends empty, again and again without allocating anew:
/// a search simulates one set of jobs in many orders.
///
/// A stage that is free takes what is ready; of a forward and a backward pass, the one that the rules prefer. It idles
/// only when nothing is ready, or between the microbatches of a group that it has begun. A pass is ready from the very
/// nanosecond in which its message ends. Jobs go forward and backward in one order on all stages. A group goes forward
/// only while what it will hold fits the stage's memory beside what the groups in flight there hold. Messages are sent
/// beside the computing; those of one direction between two stages go one after another.
///
/// Every job gets through, whatever the rules and limits: take the first job in the order that has not ended. All jobs
/// before it have ended on all stages. If it has not gone forward everywhere, the first stage that it has not reached
/// holds nothing, so it fits (checked when the jobs are given); else nothing is before it on its way back. Either way
/// it goes on as soon as that stage is free of a group begun there, and such a group never waits for another: the
/// stage from which its next microbatch comes has begun it too, and so on to the end of the pipeline, where it waits
/// for nothing.
class PipelineSimulator {
 public:
  /// `memory`: bytes for stashes on each stage, 0 for no limit; empty: none has a limit. `messages`: what a send takes
  /// between stages s and s + 1, in either direction; empty: nothing. Times and bytes must not be negative.
  /// Throws Error when a group alone does not fit a stage.
  PipelineSimulator(std::span<const PipelineJob> jobs, int stages, std::span<const Bytes> memory,
                    std::span<const Nanoseconds> messages);

  std::int32_t bucket_count() const { return static_cast<std::int32_t>(buckets_.size()); }

  /// Rule 1. Buckets are numbered as they first appear among the jobs, and ties stay in that order. A bucket's latency
  /// is that of its longest microbatch, of a group the mean.
  std::vector<std::int32_t> bucket_order(const TemplateRules& rules) const;

  /// Rule 2: the jobs, buckets taken in the order given; those of one bucket stay in the order given.
  std::vector<std::int32_t> job_order(std::span<const std::int32_t> buckets, const TemplateRules& rules) const;

  /// When the last pass ends if jobs enter in `order`, in which each stands once. Only rule 3 and `backward_first`
  /// matter here. Cost: O(microbatches × stages²), the second factor a scan of a short array.
  Nanoseconds makespan(std::span<const std::int32_t> order, const TemplateRules& rules);

  /// The same with every pass written down.
  PipelineSchedule schedule(std::span<const std::int32_t> order, const TemplateRules& rules);

 private:
  /// The next pass of one direction on a stage.
  struct Place {
    std::int32_t position = 0;  ///< of its job in the order
    std::int32_t chunk = 0;     ///< how many of the group have begun
    std::int32_t passes = 0;    ///< how many have begun in all
  };
  struct Stage {
    Nanoseconds free_at = 0;
    Bytes held = 0;
    Place forward, backward;
    bool next_is_forward = true;
  };

  std::size_t at(std::int32_t job, std::size_t stage) const { return static_cast<std::size_t>(job) * count_ + stage; }
  std::size_t at(std::int32_t job, std::int32_t chunk, std::size_t stage) const {
    return (first_[static_cast<std::size_t>(job)] + static_cast<std::size_t>(chunk)) * count_ + stage;
  }
  void check_and_flatten(const PipelineJob& job);
  void number_buckets(std::span<const PipelineJob> jobs);
  void check_order(std::span<const std::int32_t> order);

  template <bool kRecord>
  Nanoseconds run(std::span<const std::int32_t> order, const TemplateRules& rules, PipelineSchedule* recorded);
  Nanoseconds forward_ready(std::size_t s, std::span<const std::int32_t> order, bool eager) const;
  Nanoseconds backward_ready(std::size_t s, std::size_t jobs) const;
  void decide(std::size_t s, std::span<const std::int32_t> order, const TemplateRules& rules);
  void begin_forward(std::size_t s, std::int32_t job, std::int32_t chunk);
  void begin_backward(std::size_t s, std::int32_t job, std::int32_t chunk);
  void advance(Place& place, std::int32_t job) const;

  // What was given: times by microbatch and stage, `need_`, of a whole group, by job and stage.
  std::size_t count_ = 0;  ///< stages
  std::vector<Nanoseconds> forward_, backward_, messages_;
  std::vector<Bytes> need_, memory_;
  std::vector<std::int32_t> chunks_;
  std::vector<std::size_t> first_;  ///< by job, its first microbatch
  std::size_t microbatches_ = 0;
  std::vector<std::vector<std::int32_t>> buckets_;
  std::vector<Nanoseconds> bucket_latency_;

  // A run's state. Arrivals: by stage, when the input of its n-th pass comes; valid for passes begun by the sender.
  std::vector<Stage> stages_;
  std::vector<Nanoseconds> next_start_;  ///< by stage, kept apart from `stages_` for the scan
  std::vector<Nanoseconds> activation_arrival_, gradient_arrival_;
  std::vector<std::uint8_t> seen_;
};

/// The template of MuxTune section 3.4.1 for `jobs`: see PipelineSimulator for the meaning of every argument, what is
/// guaranteed, errors and cost.
PipelineSchedule schedule_pipeline(std::span<const PipelineJob> jobs, int stages, std::span<const Bytes> memory,
                                   std::span<const Nanoseconds> messages, const TemplateRules& rules);

/// Its makespan alone, for a planner that tries many.
Nanoseconds pipeline_makespan(std::span<const PipelineJob> jobs, int stages, std::span<const Bytes> memory,
                              std::span<const Nanoseconds> messages, const TemplateRules& rules);

}  // namespace braid::planner
