#include "exec/profiling/measured_points.h"

#include <algorithm>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "planner/program/load.h"

namespace braid::exec {
namespace {

MeasuredPoint any_point() {
  const auto tokens = *rc::gen::inRange<std::int64_t>(1, 400), context = *rc::gen::inRange<std::int64_t>(1, 90);
  const auto chunk = *rc::gen::inRange<std::int64_t>(0, 40), scored = *rc::gen::inRange<std::int64_t>(0, 400);
  return uniform_point(*rc::gen::inRange<planner::TaskIndex>(0, 3), tokens, context, chunk, scored);
}

RC_GTEST_PROP(MeasuredPoints, HoldEachTokenOnceInChunksThatFollowOneAnother, ()) {
  const auto tokens = *rc::gen::inRange<std::int64_t>(1, 400), context = *rc::gen::inRange<std::int64_t>(1, 90);
  const auto chunk = *rc::gen::inRange<std::int64_t>(0, 40), scored = *rc::gen::inRange<std::int64_t>(0, 400);
  const MeasuredPoint point = uniform_point(1, tokens, context, chunk, scored);
  RC_ASSERT(point.tokens() == tokens);
  std::vector<std::int32_t> ends(static_cast<std::size_t>((tokens + context - 1) / context), 0);
  std::int64_t counted = 0;
  for (const planner::Microbatch& microbatch : point.microbatches) {
    for (const planner::Segment& segment : microbatch.segments) {
      std::int32_t& end = ends.at(static_cast<std::size_t>(segment.index));
      RC_ASSERT(segment.begin == end && segment.end > end && segment.task == 1);
      RC_ASSERT(chunk == 0 || segment.tokens() <= chunk);
      end = segment.end;
      counted += segment.scored;
    }
  }
  for (std::size_t i = 0; i < ends.size(); ++i)
    RC_ASSERT(ends[i] == std::min(context, tokens - static_cast<std::int64_t>(i) * context));
  RC_ASSERT(counted == std::min(scored, tokens - std::ssize(ends)));
}

RC_GTEST_PROP(MeasuredPoints, RowsAreWhatTheCostModelIsToldOf, ()) {
  constexpr std::int64_t kVocabulary = 50;
  const MeasuredPoint point = any_point();
  const std::vector<costmodel::AdapterShape> adapters(3);
  for (planner::Microbatch microbatch : point.microbatches) {
    microbatch.segments.back().padding = *rc::gen::inRange<std::int32_t>(0, 5);
    const costmodel::MicrobatchLoad load = planner::load_of(microbatch, adapters);
    const Batch batch = random_batch(microbatch, kVocabulary);
    RC_ASSERT(batch.rows() == load.tokens && std::ssize(batch.scored) == load.scored);
    RC_ASSERT(batch.sequences.size() == load.sequences.size() && batch.tasks.size() == load.tasks.size());
    RC_ASSERT(batch.tasks.back().last == batch.rows());
    RC_ASSERT(std::ranges::is_sorted(batch.scored, {}, &ScoredRow::row));
    for (const std::int32_t token : batch.tokens) RC_ASSERT(token >= 0 && token < kVocabulary);
  }
}

RC_GTEST_PROP(MeasuredPoints, ComeBackFromBytesAsTheyWere, ()) {
  std::vector<MeasuredPoint> points;
  for (int i = 0; i < 3; ++i) {
    points.push_back(any_point());
    points.back().layers = i;
    points.back().attends = i == 1;
    points.back().needed = i == 2;
  }
  RC_ASSERT(points_from_bytes(to_bytes(points)) == points);
  RC_ASSERT(points_from_bytes(to_bytes({})).empty());
}

}  // namespace
}  // namespace braid::exec
