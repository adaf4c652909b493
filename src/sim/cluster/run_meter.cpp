#include "sim/cluster/run_meter.h"

namespace braid::sim {

void RunMeter::advance(double from, double to, const Levels& levels, const TokenMeter& tokens) {
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
