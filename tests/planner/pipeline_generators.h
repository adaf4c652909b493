#pragma once

#include <cstdint>

#include <rapidcheck.h>

#include "planner/template_study.h"

// Pipelines that RapidCheck draws.
namespace braid::planner::testing {

inline std::uint64_t any_seed() {
  return *rc::gen::arbitrary<std::uint32_t>();
}

inline StudyShape any_shape() {
  StudyShape shape;
  shape.stages = *rc::gen::inRange(1, 8);
  shape.buckets = *rc::gen::inRange(1, 7);
  shape.most_jobs = *rc::gen::inRange(1, 8);
  shape.spread = *rc::gen::element(1.0, 3.0, 50.0);
  return shape;
}

}  // namespace braid::planner::testing
