#include "planner/muxtune/task_grouping.h"

#include <algorithm>
#include <cmath>
#include <compare>
#include <functional>
#include <numeric>
#include <queue>
#include <tuple>
#include <utility>

#include "base/error.h"

namespace braid::planner {
namespace {

using Buckets = std::vector<std::vector<std::int32_t>>;
constexpr std::int32_t kNoMore = -1;

double latency_of(const std::vector<std::int32_t>& bucket, std::span<const double> seconds) {
  double latency = 0;
  for (const std::int32_t htask : bucket) latency += seconds[static_cast<std::size_t>(htask)];
  return latency;
}

double mean_latency(std::span<const double> seconds, std::size_t buckets) {
  return std::accumulate(seconds.begin(), seconds.end(), 0.0) / static_cast<double>(buckets);
}

double squared(double value) {
  return value * value;
}

/// Sorts, so that every way to the same buckets gives the same bits.
Grouping grouping_of(Buckets buckets, std::span<const double> seconds) {
  std::vector<std::pair<double, std::vector<std::int32_t>>> keyed;
  for (std::vector<std::int32_t>& bucket : buckets) {
    BRAID_CHECK(!bucket.empty(), "an empty bucket of {}", buckets.size());
    std::sort(bucket.begin(), bucket.end());
    keyed.emplace_back(-latency_of(bucket, seconds), std::move(bucket));
  }
  std::sort(keyed.begin(), keyed.end());
  Grouping grouping;
  const double mean = mean_latency(seconds, keyed.size());
  for (auto& [negative_latency, bucket] : keyed) {
    grouping.variance_sum += squared(-negative_latency - mean);
    grouping.buckets.push_back(std::move(bucket));
  }
  return grouping;
}

/// Each hTask, the longest first, into the bucket with the least latency; of equals into the one with the fewest
/// hTasks, so that none stays empty.
Buckets longest_into_least(std::span<const double> seconds, std::size_t count) {
  std::vector<std::size_t> order(seconds.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t left, std::size_t right) { return seconds[left] > seconds[right]; });
  using Place = std::tuple<double, std::size_t, std::size_t>;  // latency, hTasks, bucket
  std::priority_queue<Place, std::vector<Place>, std::greater<>> least;
  for (std::size_t b = 0; b < count; ++b) least.emplace(0.0, 0, b);
  Buckets buckets(count);
  for (const std::size_t htask : order) {
    const auto [latency, htasks, bucket] = least.top();
    least.pop();
    buckets[bucket].push_back(static_cast<std::int32_t>(htask));
    least.emplace(latency + seconds[htask], htasks + 1, bucket);
  }
  return buckets;
}

/// A bucket of an unfinished grouping: a chain of hTasks, and its latency less that of the least bucket there.
struct Chain {
  double seconds = 0;
  std::int32_t first = 0;
  std::int32_t last = 0;
  auto operator<=>(const Chain&) const = default;
};
/// Descending; empty buckets, which are the least, are not listed.
using Chains = std::vector<Chain>;

/// The largest with the least, the second with the second least, and so on; `next` holds each hTask's follower.
Chains merged(Chains left, const Chains& right, std::size_t count, std::vector<std::int32_t>& next) {
  const std::size_t filled = left.size();
  for (std::size_t b = 0; b < right.size(); ++b) {
    const std::size_t partner = count - 1 - b;
    if (partner >= filled) {
      left.push_back(right[b]);
      continue;
    }
    Chain& bucket = left[partner];
    next[static_cast<std::size_t>(bucket.last)] = right[b].first;
    bucket = {bucket.seconds + right[b].seconds, bucket.first, right[b].last};
  }
  std::sort(left.begin(), left.end(), std::greater<>());
  if (left.size() == count) {
    const double least = left.back().seconds;
    for (Chain& bucket : left) bucket.seconds -= least;
  }
  return left;
}

/// Karmarkar and Karp's differencing: the two unfinished groupings that are most uneven become one, until one is left.
Buckets by_differencing(std::span<const double> seconds, std::size_t count) {
  std::vector<Chains> groupings;
  std::vector<std::int32_t> next(seconds.size(), kNoMore);
  std::priority_queue<std::pair<double, std::size_t>> uneven;  // by how much, grouping
  for (std::size_t h = 0; h < seconds.size(); ++h) {
    groupings.push_back({{count == 1 ? 0.0 : seconds[h], static_cast<std::int32_t>(h), static_cast<std::int32_t>(h)}});
    uneven.emplace(seconds[h], h);
  }
  while (uneven.size() > 1) {
    const std::size_t first = uneven.top().second;
    uneven.pop();
    const std::size_t second = uneven.top().second;
    uneven.pop();
    groupings[first] = merged(std::move(groupings[first]), groupings[second], count, next);
    uneven.emplace(groupings[first].front().seconds, first);
  }
  Buckets buckets;
  for (const Chain& chain : groupings[uneven.top().second]) {
    std::vector<std::int32_t>& bucket = buckets.emplace_back();
    for (std::int32_t h = chain.first; h != kNoMore; h = next[static_cast<std::size_t>(h)]) bucket.push_back(h);
  }
  return buckets;
}

struct Member {
  double seconds = 0;
  std::int32_t htask = 0;
};
struct Bucket {
  std::vector<Member> members;  ///< by latency descending
  double seconds = 0;
  std::int64_t changed = 0;  ///< the visit that last exchanged something
};

void insert(Bucket& bucket, const Member& member) {
  const auto longer = [](const Member& left, const Member& right) { return left.seconds > right.seconds; };
  bucket.members.insert(std::upper_bound(bucket.members.begin(), bucket.members.end(), member, longer), member);
}

Member take(Bucket& bucket, std::size_t place) {
  const Member member = bucket.members[place];
  bucket.members.erase(bucket.members.begin() + static_cast<std::ptrdiff_t>(place));
  return member;
}

struct Exchange {
  std::size_t given = 0;  ///< place in the larger bucket
  std::size_t taken = 0;  ///< place in the smaller; its size: none
  double gain = 0;        ///< half of what the sum of squares loses
};

/// The best member of `larger` to give for one of `smaller` or for none. Giving d seconds where the gap is g lessens
/// the sum of squares by 2 d (g − d), most at d = g / 2; one walk along both lists finds the best. As 0 < d < g, a
/// bucket never gives its only member for none.
Exchange best_exchange(const Bucket& larger, const Bucket& smaller) {
  const double gap = larger.seconds - smaller.seconds;
  const std::size_t none = smaller.members.size();
  Exchange best;
  std::size_t taken = none;
  for (std::size_t given = larger.members.size(); given-- > 0;) {
    const double mine = larger.members[given].seconds;
    const auto moved = [&](std::size_t place) { return mine - (place < none ? smaller.members[place].seconds : 0.0); };
    // `taken` is the longest for which at least half of the gap is moved; for the one before it, less is.
    while (taken > 0 && moved(taken - 1) >= gap / 2) --taken;
    for (std::size_t place = taken - (taken > 0 ? 1 : 0); place <= taken; ++place) {
      const double gain = moved(place) * (gap - moved(place));
      if (gain > best.gain) best = {given, place, gain};
    }
  }
  return best;
}

void apply(const Exchange& exchange, Bucket& larger, Bucket& smaller) {
  const Member given = take(larger, exchange.given);
  if (exchange.taken < smaller.members.size()) insert(larger, take(smaller, exchange.taken));
  insert(smaller, given);
  BRAID_CHECK(!larger.members.empty(), "hTask {} left its bucket empty", given.htask);
  for (Bucket* bucket : {&larger, &smaller}) {
    bucket->seconds = 0;
    for (const Member& member : bucket->members) bucket->seconds += member.seconds;
  }
}

std::vector<Bucket> with_latencies(const Buckets& buckets, std::span<const double> seconds) {
  std::vector<Bucket> result(buckets.size());
  for (std::size_t b = 0; b < buckets.size(); ++b) {
    for (const std::int32_t htask : buckets[b]) insert(result[b], {seconds[static_cast<std::size_t>(htask)], htask});
    for (const Member& member : result[b].members) result[b].seconds += member.seconds;
  }
  return result;
}

/// Visits all pairs of buckets round after round and makes the best exchange of each, until none helps. A pair that
/// has not changed since its last visit, one round ago, is passed over.
Buckets exchanged(const Buckets& start, std::span<const double> seconds) {
  constexpr std::int64_t kMostRounds = 100;
  const double negligible = 1e-14 * squared(mean_latency(seconds, start.size()));
  std::vector<Bucket> buckets = with_latencies(start, seconds);
  const auto pairs = static_cast<std::int64_t>(buckets.size() * (buckets.size() - 1) / 2);
  std::int64_t visit = 0, last_exchange = 0;
  while (visit - last_exchange <= pairs && visit < kMostRounds * pairs) {
    for (std::size_t a = 0; a < buckets.size(); ++a) {
      for (std::size_t b = a + 1; b < buckets.size(); ++b) {
        ++visit;
        if (std::max(buckets[a].changed, buckets[b].changed) < visit - pairs) continue;
        const bool ordered = buckets[a].seconds >= buckets[b].seconds;
        Bucket& larger = buckets[ordered ? a : b];
        Bucket& smaller = buckets[ordered ? b : a];
        if (squared(larger.seconds - smaller.seconds) / 4 <= negligible) continue;
        const Exchange exchange = best_exchange(larger, smaller);
        if (exchange.gain <= negligible) continue;
        apply(exchange, larger, smaller);
        larger.changed = smaller.changed = last_exchange = visit;
      }
    }
  }
  Buckets result(buckets.size());
  for (std::size_t b = 0; b < buckets.size(); ++b) {
    for (const Member& member : buckets[b].members) result[b].push_back(member.htask);
  }
  return result;
}

void check_latencies(std::span<const double> seconds) {
  for (const double here : seconds) BRAID_CHECK(std::isfinite(here) && here >= 0, "an hTask takes {} s", here);
}

void check_count(std::span<const double> seconds, std::int32_t buckets) {
  if (buckets < 1 || static_cast<std::size_t>(buckets) > seconds.size()) {
    throw error("{} hTasks do not go into {} buckets; give 1 to {}", seconds.size(), buckets, seconds.size());
  }
}

}  // namespace

Grouping group_htasks_by_exchange(std::span<const double> first_stage_seconds, std::int32_t buckets) {
  check_latencies(first_stage_seconds);
  check_count(first_stage_seconds, buckets);
  const auto count = static_cast<std::size_t>(buckets);
  const auto improved = [&](const Buckets& start) {
    return grouping_of(exchanged(start, first_stage_seconds), first_stage_seconds);
  };
  Grouping best = improved(longest_into_least(first_stage_seconds, count));
  Grouping other = improved(by_differencing(first_stage_seconds, count));
  if (other.variance_sum < best.variance_sum) best = std::move(other);
  best.exact = best.variance_sum == 0;
  return best;
}

TaskGroupings::TaskGroupings(std::vector<double> first_stage_seconds) : seconds_(std::move(first_stage_seconds)) {
  check_latencies(seconds_);
  if (!seconds_.empty() && seconds_.size() <= kExactlyGrouped) exact_.emplace(seconds_);
}

Grouping TaskGroupings::into(std::int32_t buckets) {
  check_count(seconds_, buckets);
  const auto count = static_cast<std::size_t>(buckets);
  // Each by itself, or all in one.
  const bool no_choice = count == 1 || count == seconds_.size();
  if (!no_choice && !exact_) return group_htasks_by_exchange(seconds_, buckets);
  Buckets best(count);
  if (no_choice) {
    for (std::size_t h = 0; h < seconds_.size(); ++h) best[count == 1 ? 0 : h].push_back(static_cast<std::int32_t>(h));
  } else {
    best = exact_->into(buckets);
  }
  Grouping grouping = grouping_of(std::move(best), seconds_);
  grouping.exact = true;
  return grouping;
}

Grouping group_htasks(std::span<const double> first_stage_seconds, std::int32_t buckets) {
  return TaskGroupings({first_stage_seconds.begin(), first_stage_seconds.end()}).into(buckets);
}

}  // namespace braid::planner
