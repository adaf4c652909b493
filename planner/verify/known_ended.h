#pragma once

#include <array>
#include <vector>

#include "planner/program/program.h"

namespace braid::planner {

/// For each instruction of a stage, how many entries of each stream of that stage have surely ended when it starts:
/// told by stream order and waits alone, so that it holds whatever the durations. Waits must name earlier instructions.
class KnownEnded {
 public:
  explicit KnownEnded(const StageProgram& stage);

  /// True when the instruction at `earlier` has ended before the one at `later` starts.
  bool ended(std::size_t earlier, std::size_t later) const {
    return known_[later][stream_[earlier]] > ordinal_[earlier];
  }
  /// True when some instruction of this slice in `stream` has ended before: then all of earlier slices have.
  bool any(Stream stream, std::size_t later) const { return known_[later][static_cast<std::size_t>(stream)] > 0; }

 private:
  using Counts = std::array<std::uint32_t, kStreamCount>;
  std::vector<Counts> known_;
  std::vector<std::size_t> stream_;
  std::vector<std::uint32_t> ordinal_;  ///< place within its stream
};

}  // namespace braid::planner
