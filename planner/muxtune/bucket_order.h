#pragma once

#include <cstdint>
#include <vector>

#include "planner/muxtune/pipeline_template.h"

namespace braid::planner {

struct BucketOrder {
  std::vector<std::int32_t> buckets;  ///< numbered as the simulator does
  Nanoseconds makespan = 0;
  std::int64_t evaluations = 0;  ///< pipelines simulated
  bool truncated = false;        ///< stopped at the limit, not where no move helps
};

/// Looks for an order of buckets that is faster than MuxTune's descending one (section 3.4.1, rule 1). That one keeps
/// equal stages' last one busy (appendix A, Theorem 2), yet warms up with the longest microbatch; orders that begin and
/// end with shorter ones often win. Moves one bucket to another place or exchanges two, takes every move that helps,
/// and stops where none does.
///
/// Never slower than the descending order, whatever `rules.descending` says. Simulates at most `most_evaluations`
/// pipelines (at least one), a round of moves over B buckets being under 3 B²/2 of them.
BucketOrder search_bucket_order(PipelineSimulator& simulator, TemplateRules rules, std::int64_t most_evaluations);

}  // namespace braid::planner
