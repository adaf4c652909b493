#include "sim/cluster/run_meter.h"

#include <algorithm>

#include "sim/cluster/moments.h"

namespace braid::sim {

void TokenMeter::add_rate(double per_second, double from_seconds) {
  if (from_seconds <= passed_) {
    rate_ += per_second;
    rate_from_ += per_second * from_seconds;
    return;
  }
  Begin& begin = begins_[from_seconds];
  begin.rate += per_second;
  begin.count += per_second < 0 ? -1 : 1;
  if (begin.count == 0) begins_.erase(from_seconds);
}

double TokenMeter::next_begin() const {
  return begins_.empty() ? kNever : begins_.begin()->first;
}

void TokenMeter::pass(double until) {
  passed_ = until;
  for (; next_begin() <= until; begins_.erase(begins_.begin())) {
    const auto& [from, begin] = *begins_.begin();
    rate_ += begin.rate;
    rate_from_ += begin.rate * from;
  }
}

void RunMeter::advance(double from, double to, const Levels& levels, TokenMeter& tokens) {
  while (from < to) {
    const double until = std::min(to, tokens.next_begin());
    advance_between_begins(from, until, levels, tokens);
    tokens.pass(until);
    from = until;
  }
}

void RunMeter::advance_between_begins(double from, double to, const Levels& levels, const TokenMeter& tokens) {
  const double span = to - from, before = tokens.at(from), after = tokens.at(to);
  sums_.allocated_gpu_seconds += static_cast<double>(levels.allocated) * span;
  sums_.broken_gpu_seconds += static_cast<double>(levels.broken) * span;
  sums_.fragmented_gpu_seconds += levels.fragmented * span;
  if (levels.waiting > 0) sums_.waiting_free_gpu_seconds += static_cast<double>(levels.free) * span;
  usage_.add(to, static_cast<double>(levels.allocated), static_cast<double>(levels.running),
             static_cast<double>(levels.waiting), after - before);
  if (!levels.is_full) return;
  if (!was_full_) {
    saturated_from_tokens_ = before - lost_tokens_;
    sums_.saturated.from_seconds = from;
  }
  was_full_ = true;
  sums_.saturated.to_seconds = to;
  sums_.saturated.tokens = after - lost_tokens_ - saturated_from_tokens_;
}

void RunMeter::lose(double tokens) {
  lost_tokens_ += tokens;
}

}  // namespace braid::sim
