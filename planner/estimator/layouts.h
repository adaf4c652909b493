#pragma once

#include <algorithm>
#include <mutex>
#include <vector>

#include "planner/plan/deployment.h"

namespace braid::planner {

/// Numbers deployments by the ranks that they have layers on, in the order in which they are first seen. Safe for
/// concurrent use.
class Layouts {
 public:
  std::int32_t number(const std::vector<ReplicaShape>& deployment) {
    const std::lock_guard lock(mutex_);
    const auto like = [&](const std::vector<ReplicaShape>& known) { return same_places(known, deployment); };
    const auto found = std::find_if(known_.begin(), known_.end(), like);
    const auto place = found - known_.begin();
    if (found == known_.end()) known_.push_back(deployment);
    return static_cast<std::int32_t>(place);
  }

 private:
  std::mutex mutex_;
  std::vector<std::vector<ReplicaShape>> known_;
};

}  // namespace braid::planner
