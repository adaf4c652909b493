#include "planner/batch_key.h"

#include <set>

#include "base/error.h"

namespace braid::planner {

std::vector<BatchKey> batches_of(const Microbatch& microbatch) {
  std::set<BatchKey> keys;
  for (const Segment& segment : microbatch.segments) keys.insert({segment.task, segment.global_batch});
  return {keys.begin(), keys.end()};
}

std::string describe(const BatchKey& key) {
  return fmt::format("task {} batch {}", key.task, key.global_batch);
}

}  // namespace braid::planner
