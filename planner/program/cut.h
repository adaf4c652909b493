#pragma once

#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "planner/program/program.h"

namespace braid::planner {

/// Splits a stream into two slices. `after` gives per stage how many instructions must lie before the cut; the cut is
/// the earliest place from there on such that nothing before it on any stage waits for anything after it on another,
/// and no group is split. The first slice's Boundary out is the second's Boundary in.
///
/// Laws: lists put together again are the whole; replayed one after the other the two give the whole's Timeline.
std::pair<Program, Program> cut(const Program& whole, std::vector<std::size_t> after);

/// The same of a stream whose stages' lists were made up to unlike moments; nothing where the cut would lie behind the
/// end of some stage's list.
std::optional<std::pair<Program, Program>> cut_if_whole(const Program& whole, std::vector<std::size_t> after);

/// Per stage, the place just after the last Step of any task that comes before the task's global batch `next_batch`:
/// where a window ends.
std::vector<std::size_t> end_of_window(const Program& program, std::span<const std::int64_t> next_batch);

}  // namespace braid::planner
