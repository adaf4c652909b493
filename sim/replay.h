#pragma once

#include "planner/program/timeline.h"

namespace braid::sim {

/// When each instruction of `program` runs, given how long each takes (DESIGN: one Program, two machines).
///
/// An instruction starts when the one before it in its stream and all that it waits for have ended. A send then takes
/// its duration; its receive starts when its own stream is free and ends at the later of that and the send's end; one
/// that stands in the compute stream keeps its stage for as long as the send took, too (no longer than the wait where
/// the send was in an earlier slice). A collective starts when its last member is ready, takes the longest of the
/// members' durations and ends for all together.
///
/// `clocks` says when things are free at the start (all zero when empty) and is set to when they are free at the end,
/// so that slices can be replayed one after another. Throws InternalError when instructions wait for each other in a
/// circle. Cost: linear in instructions and waits.
planner::Timeline replay(const planner::Program& program, const planner::Durations& durations,
                         planner::Clocks* clocks = nullptr);

}  // namespace braid::sim
