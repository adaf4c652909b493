#include "exec/measured_points.h"

#include <algorithm>
#include <cmath>

namespace braid::exec {

std::vector<MeasuredPoint> token_points(std::int64_t most) {
  constexpr double kFewest = 18.72;
  constexpr std::int64_t kUsualContext = 64;
  std::vector<MeasuredPoint> points;
  for (double tokens = kFewest; tokens < kGridStep * static_cast<double>(std::max<std::int64_t>(most, 32));
       tokens *= kGridStep)
    points.push_back({std::llround(tokens), std::min<std::int64_t>(std::llround(tokens), kUsualContext), false});
  return points;
}

std::vector<MeasuredPoint> context_points(std::int64_t longest) {
  constexpr std::int64_t kShortest = 8, kTokens = 1024;
  // A hundredth more: a longest context that is on the grid has one beyond it too, however lengths are rounded.
  const double most = 1.01 * kGridStep * static_cast<double>(std::max(longest, kShortest));
  std::vector<MeasuredPoint> points;
  for (double length = kShortest; length < most; length *= kGridStep) {
    const std::int64_t context = std::llround(length);
    points.push_back({context * std::max<std::int64_t>(1, kTokens / context), context, true});
  }
  return points;
}

std::vector<MeasuredPoint> chunk_points(std::int64_t longest) {
  constexpr std::int64_t kShortest = 16, kTokens = 64;
  std::vector<MeasuredPoint> points;
  for (std::int64_t chunk = kShortest; chunk < longest; chunk *= 2) {
    const std::int64_t context = (longest + chunk - 1) / chunk * chunk;
    points.push_back({context * std::max<std::int64_t>(1, kTokens / chunk), context, true, chunk});
  }
  return points;
}

}  // namespace braid::exec
