#include "planner/muxtune/bucket_order.h"

#include <algorithm>
#include <utility>

namespace braid::planner {
namespace {

struct Search {
  PipelineSimulator& simulator;
  const TemplateRules& rules;
  std::int64_t most_evaluations;
  BucketOrder best;

  bool exhausted() const { return best.evaluations >= most_evaluations; }

  Nanoseconds judge(const std::vector<std::int32_t>& buckets) {
    ++best.evaluations;
    return simulator.makespan(simulator.job_order(buckets, rules), rules);
  }

  /// Keeps `buckets` when they are faster.
  bool take(std::vector<std::int32_t> buckets) {
    if (exhausted()) {
      best.truncated = true;
      return false;
    }
    const Nanoseconds makespan = judge(buckets);
    if (makespan >= best.makespan) return false;
    best.buckets = std::move(buckets);
    best.makespan = makespan;
    return true;
  }

  std::vector<std::int32_t> moved(std::size_t from, std::size_t to) const {
    std::vector<std::int32_t> buckets = best.buckets;
    const auto begin = buckets.begin();
    const auto source = begin + static_cast<std::ptrdiff_t>(from), target = begin + static_cast<std::ptrdiff_t>(to);
    if (from < to) {
      std::rotate(source, source + 1, target + 1);
    } else {
      std::rotate(target, source, source + 1);
    }
    return buckets;
  }

  std::vector<std::int32_t> exchanged(std::size_t a, std::size_t b) const {
    std::vector<std::int32_t> buckets = best.buckets;
    std::swap(buckets[a], buckets[b]);
    return buckets;
  }

  /// Tries every move once; true when some helped. Exchanges of neighbours are moves by one place.
  bool round() {
    bool helped = false;
    const std::size_t count = best.buckets.size();
    for (std::size_t a = 0; a < count && !best.truncated; ++a) {
      for (std::size_t b = 0; b < count && !best.truncated; ++b) {
        if (a == b || a == b + 1) continue;
        helped |= take(moved(a, b));
        if (b > a + 1) helped |= take(exchanged(a, b));
      }
    }
    return helped;
  }
};

}  // namespace

BucketOrder search_bucket_order(PipelineSimulator& simulator, TemplateRules rules, std::int64_t most_evaluations) {
  rules.descending = true;
  Search search{simulator, rules, most_evaluations, {}};
  search.best.buckets = simulator.bucket_order(rules);
  search.best.makespan = search.judge(search.best.buckets);
  while (search.round()) {
  }
  return std::move(search.best);
}

}  // namespace braid::planner
