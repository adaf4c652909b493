#pragma once

#include <string>
#include <string_view>

#include "planner/window/program_stream.h"

namespace braid::planner {

/// What one stage of one replica runs of a slice: its own list and microbatches, where all stages lie, and what is
/// under way at the cuts.
Slice part_of(const Slice& slice, StageIndex stage);

/// A slice in the bytes of this kind of machine, for ranks of one build.
std::string to_bytes(const Slice& slice);
/// Throws InternalError where the bytes are not a whole slice's.
Slice slice_from_bytes(std::string_view bytes);

}  // namespace braid::planner
