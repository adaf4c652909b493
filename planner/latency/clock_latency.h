#pragma once

#include <optional>
#include <span>
#include <unordered_map>

#include "costmodel/work/stage_latency.h"
#include "planner/latency/clock_schedule.h"
#include "planner/latency/launch_pricing.h"
#include "planner/latency/launch_rule.h"
#include "planner/latency/load_table.h"
#include "planner/latency/run_prices.h"
#include "planner/latency/serial_clock.h"
#include "planner/program/load.h"

namespace braid::planner {

/// What a Forward or Backward takes.
struct PassTime {
  costmodel::Estimate total;
  double stalled_seconds = 0;  ///< of it: ranks wait for a collective, and nothing computes

  PassTime& operator+=(const PassTime& other) {
    total += other.total;
    stalled_seconds += other.stalled_seconds;
    return *this;
  }
};

/// What the ranks of a stage take for one Forward or Backward: the microbatches of one clock, one of each hTask of the
/// bucket that it belongs to. Tensor-parallel ranks meet in collectives on the way (costmodel::stage_collectives).
///
/// One microbatch runs its operators and collectives one after another. Those of several hTasks on a GPU are
/// interleaved subgraph by subgraph, so that one's collectives run beside the other's computation (MuxTune §3.4.2), and
/// hTasks of one task each share the launches of their adapters (§3.4.3) where that is faster.
/// Remembers what it was asked. Not for concurrent use; the cost model and the backbone must outlive it.
class ClockLatency {
 public:
  ClockLatency(const costmodel::CostModel& cost, const costmodel::BackboneShape& backbone);

  const costmodel::CostModel& cost() const { return latency_.cost(); }
  const costmodel::BackboneShape& backbone() const { return latency_.backbone(); }
  /// Of the same cost model and backbone.
  RunPrices& run_prices() { return run_prices_; }

  /// `ranks` are the stage's, for they say which links its collectives take.
  PassTime estimate(const costmodel::StageShape& stage, std::span<const std::int32_t> ranks,
                    std::span<const costmodel::MicrobatchLoad> loads, costmodel::Pass pass, LaunchRule rule);

  /// One microbatch: its operators and collectives one after another.
  PassTime alone(const costmodel::StageShape& stage, std::span<const std::int32_t> ranks,
                 const costmodel::MicrobatchLoad& load, costmodel::Pass pass);
  /// Its collectives; the load's tokens and scored rows are all that matters.
  costmodel::Estimate collectives(const costmodel::StageShape& stage, std::span<const std::int32_t> ranks,
                                  const costmodel::MicrobatchLoad& load, costmodel::Pass pass) const;

 private:
  /// Everything that the interleaved time of some loads depends on.
  struct Clock {
    costmodel::StageShape stage;
    std::vector<std::int32_t> ranks;
    std::vector<std::int32_t> loads;  ///< numbers of loads_
    costmodel::Pass pass = costmodel::Pass::forward;
    LaunchRule rule = LaunchRule::earliest_start;
    bool operator==(const Clock&) const = default;
    std::size_t hash() const;
  };

  /// Answers by what was asked.
  template <typename Answer>
  class Known {
   public:
    template <typename Make>
    const Answer& of(const Clock& clock, const Make& make) {
      const std::size_t hash = clock.hash();
      const auto [first, last] = answers_.equal_range(hash);
      for (auto known = first; known != last; ++known)
        if (known->second.first == clock) return known->second.second;
      return answers_.emplace(hash, std::pair(clock, make()))->second.second;
    }

   private:
    std::unordered_multimap<std::size_t, std::pair<Clock, Answer>> answers_;
  };

  /// Layers that are scheduled one by one; those beyond take what the last of them adds. Without collectives nothing
  /// runs beside anything, and what a further layer adds is the same from the second on.
  static constexpr std::int64_t kScheduledLayers = 3, kScheduledWithoutCollectives = 2;

  struct Interleaved {
    double seconds = 0;
    double stalled_seconds = 0;
  };

  /// What the host needs to launch a pass, and what that takes on the device.
  struct Hosted {
    double host = 0, launched = 0;
  };

  Interleaved interleaved(const Clock& clock);
  /// Of a clock whose layers are all recomputed or none.
  Interleaved of_like_layers(const Clock& clock);
  Interleaved scheduled(const Clock& clock, std::int64_t layers);
  /// Without collectives; `alone` says of which stage, and its loads do not matter.
  Nanoseconds serial(const Clock& clock, Clock alone);
  /// Of one microbatch.
  const SegmentedGraph& segmented(const Clock& alone, const LaunchPricing& pricing);
  const Hosted& hosted_of(const Clock& alone);

  std::vector<costmodel::MicrobatchLoad> loads_of(const Clock& clock) const;
  /// Whether adapters of several hTasks may share launches (§3.4.3).
  bool shares_launches(const Clock& clock) const;

  costmodel::StageLatency latency_;
  RunPrices run_prices_;
  std::optional<LaunchPricing> pricing_;  // of a GPU
  LoadTable loads_;
  Known<Interleaved> known_;
  Known<SegmentedGraph> graphs_;  // of one microbatch each, on shards
  Known<SerialWork> serial_;      // of one microbatch each, on whole stages
  Known<Hosted> hosted_;          // likewise
};

}  // namespace braid::planner
