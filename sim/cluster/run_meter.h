#pragma once

#include <cstddef>
#include <cstdint>
#include <map>

#include "sim/cluster/moments.h"
#include "sim/cluster/usage.h"

namespace braid::sim {

/// Tokens that instances bill: each at a rate of its own that changes now and then, added up without visiting them.
class TokenMeter {
 public:
  /// What stands at a moment from the last change on, before the next begin.
  double at(double seconds) const { return done_ + rate_ * seconds - rate_from_; }
  /// An instance bills so much a second from a moment on, which may be to come; less where the rate is negative. What
  /// was added is taken back with the same moment.
  void add_rate(double per_second, double from_seconds);
  void add(double tokens) { done_ += tokens; }
  /// Of instances that bill no longer.
  double done() const { return done_; }

  /// When an instance next begins to bill; infinity where none will.
  double next_begin() const;
  /// Moments until then have passed.
  void pass(double until);

 private:
  struct Begin {
    double rate = 0;
    int count = 0;  // added less taken back
  };

  double done_ = 0, rate_ = 0, rate_from_ = 0;
  double passed_ = -kNever;
  std::map<double, Begin> begins_;  // to come
};

/// What a run adds up from one moment to the next.
class RunMeter {
 public:
  /// What stays the same between two moments.
  struct Levels {
    std::int64_t allocated = 0, free = 0, broken = 0;  ///< GPUs
    double fragmented = 0;                             ///< of those free
    std::size_t running = 0;                           ///< jobs
    std::int64_t waiting = 0;
    bool is_full = false;  ///< no job would find a place of its own
  };
  struct Sums {
    double allocated_gpu_seconds = 0, waiting_free_gpu_seconds = 0, broken_gpu_seconds = 0;
    double fragmented_gpu_seconds = 0;
    SaturatedSpan saturated;
  };

  RunMeter(double first_seconds, double bin_seconds) : usage_(first_seconds, bin_seconds) {}

  void advance(double from, double to, const Levels& levels, TokenMeter& tokens);
  /// Tokens billed before that are lost: their work is done anew.
  void lose(double tokens);

  const Sums& sums() const { return sums_; }
  Usage usage(double end) { return usage_.finish(end); }

 private:
  void advance_between_begins(double from, double to, const Levels& levels, const TokenMeter& tokens);

  Sums sums_;
  bool was_full_ = false;
  double lost_tokens_ = 0, saturated_from_tokens_ = 0;
  UsageMeter usage_;
};

}  // namespace braid::sim
