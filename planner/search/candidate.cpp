#include "planner/search/candidate.h"

#include <algorithm>

namespace braid::planner {

Bytes Candidate::fullest() const {
  const std::vector<Bytes>& peaks = prediction.peak_memory_bytes;
  return *std::max_element(peaks.begin(), peaks.end());
}

bool faster(const Candidate& a, const Candidate& b) {
  return a.prediction.step_seconds < b.prediction.step_seconds;
}

}  // namespace braid::planner
