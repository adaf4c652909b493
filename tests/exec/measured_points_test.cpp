#include "exec/measured_points.h"

#include <algorithm>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace braid::exec {
namespace {

RC_GTEST_PROP(MeasuredPoints, ReachWhatIsAskedForInStepsOfAGrid, ()) {
  const std::int64_t most = *rc::gen::inRange<std::int64_t>(1, 100'000);
  const std::vector<MeasuredPoint> tokens = token_points(most), contexts = context_points(most);
  const auto beyond = static_cast<std::int64_t>(1.5 * static_cast<double>(std::max<std::int64_t>(most, 32)));
  RC_ASSERT(tokens.back().tokens >= most && tokens.back().tokens <= beyond);
  RC_ASSERT(contexts.back().context >= most && contexts.back().context <= beyond);
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    RC_ASSERT(tokens[i].context <= tokens[i].tokens && !tokens[i].attends);
    if (i > 0) RC_ASSERT(tokens[i].tokens > tokens[i - 1].tokens && tokens[i].tokens < 1.5 * tokens[i - 1].tokens);
  }
  for (std::size_t i = 0; i < contexts.size(); ++i) {
    RC_ASSERT(contexts[i].attends && contexts[i].chunk == 0);
    RC_ASSERT(contexts[i].tokens % contexts[i].context == 0);
    if (i > 0) {
      RC_ASSERT(contexts[i].context > contexts[i - 1].context);
      RC_ASSERT(static_cast<double>(contexts[i].context) < 1.5 * static_cast<double>(contexts[i - 1].context));
    }
  }
}

RC_GTEST_PROP(MeasuredPoints, ChunksMakeUpWholeSequencesOfTheLongestContext, ()) {
  const std::int64_t longest = *rc::gen::inRange<std::int64_t>(1, 10'000);
  const std::vector<MeasuredPoint> points = chunk_points(longest);
  RC_ASSERT(points.empty() == (longest <= 16));
  for (const MeasuredPoint& point : points) {
    RC_ASSERT(point.attends && point.chunk < longest);
    RC_ASSERT(point.context % point.chunk == 0 && point.tokens % point.context == 0);
    RC_ASSERT(point.context >= longest && point.context < longest + point.chunk);
  }
}

}  // namespace
}  // namespace braid::exec
