#pragma once

#include <cstdint>
#include <numbers>
#include <vector>

namespace braid::exec {

/// What passes are measured of.
struct MeasuredPoint {
  std::int64_t tokens = 0;
  std::int64_t context = 0;
  bool attends = false;     ///< one of attention's curve, and of no other
  std::int64_t chunk = 0;   ///< tokens that sequences are cut into; 0: they are not
  std::int64_t passes = 0;  ///< in one round; 0: not known yet
};

/// Neighbours on a grid are this far apart.
inline constexpr double kGridStep = std::numbers::sqrt2;

/// Token counts from one that is no round number to `most`, 32 at least, or a step beyond: kernels have a ragged end on
/// most microbatches, and so on these.
std::vector<MeasuredPoint> token_points(std::int64_t most);

/// Contexts from 8 up to `longest` or a step beyond at one token count, in whole sequences: attention alone sees them,
/// and no adapter does. Few short sequences by themselves take longer each, which no other batch does.
std::vector<MeasuredPoint> context_points(std::int64_t longest);

/// Sequences of the longest context in chunks of 16, 32, 64, ... tokens, so that one point gives all prefixes.
std::vector<MeasuredPoint> chunk_points(std::int64_t longest);

}  // namespace braid::exec
