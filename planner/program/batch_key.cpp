#include "planner/program/batch_key.h"

#include <algorithm>
#include <functional>

#include "base/error.h"

namespace braid::planner {

std::vector<BatchKey> batches_of(const Microbatch& microbatch) {
  std::vector<BatchKey> keys;
  for (const Segment& segment : microbatch.segments) {
    const BatchKey key{segment.task, segment.global_batch};
    // Segments of one batch mostly stand together.
    if (keys.empty() || keys.back() != key) keys.push_back(key);
  }
  if (std::adjacent_find(keys.begin(), keys.end(), std::greater_equal<>()) == keys.end()) return keys;
  std::sort(keys.begin(), keys.end());
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  return keys;
}

std::string describe(const BatchKey& key) {
  return fmt::format("task {} batch {}", key.task, key.global_batch);
}

}  // namespace braid::planner
