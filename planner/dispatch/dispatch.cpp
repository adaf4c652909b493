#include "planner/dispatch/dispatch.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/error.h"

namespace braid::planner {
namespace {

constexpr double kHeldByNobody = std::numeric_limits<double>::infinity();

bool holds(const ReplicaSpeed& replica, const RangeLoad& range) {
  return range.interval < replica.full.size();
}

void check_held(std::span<const ReplicaSpeed> replicas, std::span<const RangeLoad> ranges) {
  for (const RangeLoad& range : ranges) {
    const bool held = std::any_of(replicas.begin(), replicas.end(), [&](const auto& one) { return holds(one, range); });
    BRAID_CHECK(held || range.sequences == 0, "no replica holds sequences of {} intervals", range.interval + 1);
  }
}

/// Of one range, with the last microbatch as its share.
double range_seconds(const ReplicaSpeed& replica, const RangeLoad& range, std::int64_t count) {
  return count == 0 ? 0 : static_cast<double>(count) * replica.seconds_a_row(range.interval);
}

/// The longest microbatch of that range.
double longest_of(const ReplicaSpeed& replica, const RangeLoad& range, std::int64_t count) {
  return count == 0 ? 0 : range_seconds(replica, range, std::min(count, replica.full[range.interval].rows));
}

/// Replicas of one speed, over which sequences are spread evenly.
struct Alike {
  const ReplicaSpeed* speed = nullptr;
  std::vector<std::size_t> replicas = {};

  double count() const { return static_cast<double>(replicas.size()); }
};

std::vector<Alike> alike(std::span<const ReplicaSpeed> replicas) {
  std::vector<Alike> kinds;
  for (std::size_t replica = 0; replica < replicas.size(); ++replica) {
    auto kind =
        std::find_if(kinds.begin(), kinds.end(), [&](const Alike& one) { return *one.speed == replicas[replica]; });
    if (kind == kinds.end()) kind = kinds.insert(kinds.end(), Alike{&replicas[replica]});
    kind->replicas.push_back(replica);
  }
  return kinds;
}

/// A dispatch that sequences move about in.
class Balancing {
 public:
  Balancing(std::span<const ReplicaSpeed> replicas, std::span<const RangeLoad> ranges)
      : replicas_(replicas),
        ranges_(ranges),
        counts_(replicas.size(), std::vector<std::int64_t>(ranges.size(), 0)),
        seconds_(replicas.size(), 0) {}

  /// Whole parts of such shares, per kind and range, evenly over the kind's replicas.
  void deal_whole_shares(std::span<const Alike> kinds, std::span<const std::vector<double>> shares) {
    for (std::size_t kind = 0; kind < kinds.size(); ++kind) {
      for (std::size_t range = 0; range < ranges_.size(); ++range) {
        const double each = shares[kind][range] * static_cast<double>(ranges_[range].sequences) / kinds[kind].count();
        const auto whole = static_cast<std::int64_t>(each);
        for (const std::size_t replica : kinds[kind].replicas) {
          if (whole > 0) move_to(replica, range, whole);
        }
      }
    }
  }

  /// What has not been dealt out yet.
  void deal_longest_first() {
    for (std::size_t range = ranges_.size(); range-- > 0;) {
      std::int64_t dealt = 0;
      for (const std::vector<std::int64_t>& counts : counts_) dealt += counts[range];
      for (std::int64_t left = ranges_[range].sequences - dealt; left > 0; --left) {
        std::size_t best = 0;
        double least = kHeldByNobody;
        for (std::size_t replica = 0; replica < replicas_.size(); ++replica) {
          if (!holds(replicas_[replica], ranges_[range])) continue;
          const double seconds = with(replica, range, 1);
          if (seconds >= least) continue;
          least = seconds;
          best = replica;
        }
        move_to(best, range, 1);
      }
    }
  }

  /// One step of the search; false where none makes the slowest replica faster and no other as slow.
  bool improve() {
    const std::size_t slow = slowest();
    const double most = seconds_[slow];
    double best = most;
    std::size_t to = 0, mine = 0, theirs = kNone;
    std::int64_t many = 0;
    for (std::size_t range = 0; range < ranges_.size(); ++range) {
      if (counts_[slow][range] == 0) continue;
      for (std::size_t other = 0; other < replicas_.size(); ++other) {
        if (other == slow || !holds(replicas_[other], ranges_[range])) continue;
        // About as many as would level the two.
        const double apart = most - seconds_[other];
        const double each = replicas_[slow].seconds_a_row(ranges_[range].interval) +
                            replicas_[other].seconds_a_row(ranges_[range].interval);
        const auto level = std::clamp<std::int64_t>(std::llround(apart / each), 1, counts_[slow][range]);
        for (const std::int64_t count : {level, std::int64_t{1}}) {
          const double after = std::max(with(slow, range, -count), with(other, range, count));
          if (after < best - kLeastGain * most) best = after, to = other, mine = range, theirs = kNone, many = count;
        }
        for (std::size_t back = 0; back < ranges_.size(); ++back) {
          if (back == range || counts_[other][back] == 0 || !holds(replicas_[slow], ranges_[back])) continue;
          const double after = std::max(exchanged(slow, range, back), exchanged(other, back, range));
          if (after < best - kLeastGain * most) best = after, to = other, mine = range, theirs = back, many = 1;
        }
      }
    }
    if (many == 0) return false;
    move_to(slow, mine, -many);
    move_to(to, mine, many);
    if (theirs != kNone) {
      move_to(to, theirs, -1);
      move_to(slow, theirs, 1);
    }
    return true;
  }

  Dispatched take() {
    Dispatched dispatched;
    dispatched.seconds = seconds_[slowest()];
    dispatched.counts = std::move(counts_);
    return dispatched;
  }

 private:
  static constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();
  static constexpr double kLeastGain = 1e-9;

  std::size_t slowest() const {
    return static_cast<std::size_t>(std::max_element(seconds_.begin(), seconds_.end()) - seconds_.begin());
  }
  double with(std::size_t replica, std::size_t range, std::int64_t more) {
    std::vector<std::int64_t>& counts = counts_[replica];
    counts[range] += more;
    const double seconds = replica_seconds(replicas_[replica], ranges_, counts);
    counts[range] -= more;
    return seconds;
  }
  /// One of `out` less, one of `in` more.
  double exchanged(std::size_t replica, std::size_t out, std::size_t in) {
    --counts_[replica][out];
    const double seconds = with(replica, in, 1);
    ++counts_[replica][out];
    return seconds;
  }
  void move_to(std::size_t replica, std::size_t range, std::int64_t more) {
    counts_[replica][range] += more;
    seconds_[replica] = replica_seconds(replicas_[replica], ranges_, counts_[replica]);
  }

  std::span<const ReplicaSpeed> replicas_;
  std::span<const RangeLoad> ranges_;
  std::vector<std::vector<std::int64_t>> counts_;
  std::vector<double> seconds_;
};

struct Fractional {
  double bound = 0;                         ///< no dispatch is faster
  std::vector<std::vector<double>> shares;  ///< per kind, per range: of its sequences, about as in the fastest
};

/// Without pipelines' ends. Whatever weights of sum 1 the kinds have, the slowest replica takes no less than the
/// weighted sum of what those of each kind take, and that no less than if each sequence were where its weighted time is
/// least (the dual of the fractional problem). Weights are moved towards the kinds that such a dispatch loads most
/// (multiplicative weights); the mean of those dispatches comes near the fastest one.
Fractional fractional(std::span<const Alike> kinds, std::span<const RangeLoad> ranges) {
  constexpr int kRounds = 400, kSettled = 100;
  std::vector<double> weights(kinds.size(), 1 / static_cast<double>(kinds.size())), load(kinds.size());
  std::vector<std::vector<double>> chosen(kinds.size(), std::vector<double>(ranges.size(), 0));
  Fractional found;
  double chosen_weight = 0;
  for (int round = 0; round < kRounds; ++round) {
    const double step = 1.0 / (1 + 0.1 * round);
    std::fill(load.begin(), load.end(), 0);
    double sum = 0;
    for (std::size_t r = 0; r < ranges.size(); ++r) {
      const RangeLoad& range = ranges[r];
      if (range.sequences == 0) continue;
      std::size_t best = 0;
      double least = kHeldByNobody;
      for (std::size_t kind = 0; kind < kinds.size(); ++kind) {
        if (!holds(*kinds[kind].speed, range)) continue;
        const double weighted = weights[kind] * kinds[kind].speed->seconds_a_row(range.interval) / kinds[kind].count();
        if (weighted < least) least = weighted, best = kind;
      }
      sum += static_cast<double>(range.sequences) * least;
      load[best] += range_seconds(*kinds[best].speed, range, range.sequences) / kinds[best].count();
      if (round >= kSettled) chosen[best][r] += step;
    }
    if (round >= kSettled) chosen_weight += step;
    found.bound = std::max(found.bound, sum);
    const double most = *std::max_element(load.begin(), load.end());
    if (most <= 0) break;
    double all = 0;
    for (std::size_t kind = 0; kind < weights.size(); ++kind)
      all += weights[kind] *= std::exp(step * (load[kind] / most - 0.5));
    for (double& weight : weights) weight /= all;
  }
  for (std::vector<double>& of_kind : chosen) {
    for (double& share : of_kind) share /= std::max(chosen_weight, 1e-300);
  }
  found.shares = std::move(chosen);
  return found;
}

}  // namespace

double replica_seconds(const ReplicaSpeed& replica, std::span<const RangeLoad> ranges,
                       std::span<const std::int64_t> counts) {
  double sum = 0, longest = 0;
  for (std::size_t range = 0; range < ranges.size(); ++range) {
    if (counts[range] == 0) continue;
    sum += range_seconds(replica, ranges[range], counts[range]);
    longest = std::max(longest, longest_of(replica, ranges[range], counts[range]));
  }
  return sum + static_cast<double>(replica.stages - 1) * longest;
}

Dispatched dispatch_balanced(std::span<const ReplicaSpeed> replicas, std::span<const RangeLoad> ranges) {
  check_held(replicas, ranges);
  const std::vector<Alike> kinds = alike(replicas);
  const Fractional likely = fractional(kinds, ranges);
  Dispatched dispatched;
  // Of like replicas longest first is near the best by itself.
  for (const bool from_shares : {false, true}) {
    if (from_shares && kinds.size() == 1) break;
    Balancing balancing(replicas, ranges);
    if (from_shares) balancing.deal_whole_shares(kinds, likely.shares);
    balancing.deal_longest_first();
    constexpr int kMostMoves = 1000;
    for (int move = 0; move < kMostMoves && balancing.improve(); ++move) {
    }
    Dispatched other = balancing.take();
    if (!from_shares || other.seconds < dispatched.seconds) dispatched = std::move(other);
  }
  dispatched.bound = std::min(dispatched.seconds, likely.bound);
  return dispatched;
}

Dispatched dispatch_by_length(std::span<const ReplicaSpeed> replicas, std::span<const std::int64_t> gpus,
                              std::span<const RangeLoad> ranges) {
  check_held(replicas, ranges);
  Dispatched dispatched;
  dispatched.counts.assign(replicas.size(), std::vector<std::int64_t>(ranges.size(), 0));
  for (std::size_t range = 0; range < ranges.size(); ++range) {
    if (ranges[range].sequences == 0) continue;
    const auto gpu_seconds = [&](std::size_t replica) {
      if (!holds(replicas[replica], ranges[range])) return kHeldByNobody;
      return static_cast<double>(gpus[replica]) * replicas[replica].seconds_a_row(ranges[range].interval);
    };
    double least = kHeldByNobody;
    for (std::size_t replica = 0; replica < replicas.size(); ++replica) least = std::min(least, gpu_seconds(replica));
    std::vector<std::size_t> best;
    for (std::size_t replica = 0; replica < replicas.size(); ++replica) {
      if (gpu_seconds(replica) == least) best.push_back(replica);
    }
    for (std::int64_t sequence = 0; sequence < ranges[range].sequences; ++sequence)
      ++dispatched.counts[best[static_cast<std::size_t>(sequence) % best.size()]][range];
  }
  for (std::size_t replica = 0; replica < replicas.size(); ++replica)
    dispatched.seconds =
        std::max(dispatched.seconds, replica_seconds(replicas[replica], ranges, dispatched.counts[replica]));
  return dispatched;
}

}  // namespace braid::planner
