#pragma once

#include <map>
#include <span>

#include "exec/trainer.h"

namespace braid::cli {

/// How long instructions waited for other ranks where they began: no work of their own.
class Waits {
 public:
  void add(const planner::Event& event, Nanoseconds waited);
  /// 0 for what waits for nobody.
  Nanoseconds of(const planner::Event& event) const;

 private:
  std::map<std::pair<planner::StageIndex, planner::InstructionId>, Nanoseconds> waited_;
};

/// The least time that a message of so many bytes took through each channel.
using FastestMessages = std::map<std::pair<planner::ChannelIndex, Bytes>, Nanoseconds>;
FastestMessages fastest_messages(std::span<const exec::RecordedWindow> windows);

/// A collective waits until its last member has come. A message moves only while both ranks call MPI, between their
/// operators: what it takes beyond the fastest of its size is taken for waiting.
Waits waits_in(const exec::RecordedWindow& window, const FastestMessages& fastest);

}  // namespace braid::cli
