#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace braid::gpu_probe {

/// One thing to measure, in the words of the profile entry that it becomes.
///
/// A "linear" of shape {in, out} over `tokens` rows is one product of 16-bit numbers: pass "forward"
/// Y [tokens, out] = X [tokens, in] · W, "backward" dX = dY · Wᵀ, "parameters" dW [in, out] = Xᵀ · dY.
/// "copy" counts bytes read and written as its tokens, "residual" of shape {H} adds rows of H numbers, "launch" is the
/// host's time to start a kernel that does nothing, and "empty_kernel" such a kernel's time on the device.
struct Point {
  std::string family;  ///< what it is measured for
  std::string op;
  std::string pass = "forward";
  std::vector<std::int64_t> shape;
  std::int64_t tokens = 1;
};

/// Everything there is to measure, each once, the points of a series (same family, op, pass, shape) in a row and their
/// tokens ascending.
std::vector<Point> all_points();

/// Places in `points` in the order they are measured, so that time may run out anywhere: first each series' fewest
/// tokens, then each one's most, then ever finer between them, and in each round series from all over the list.
std::vector<std::size_t> measuring_order(const std::vector<Point>& points);

/// How many at the front of that order are measured however little time there is: both ends of every series.
std::size_t least_measured(const std::vector<Point>& points);

/// What --list prints: a line for each series.
std::string listing(const std::vector<Point>& points);

}  // namespace braid::gpu_probe
