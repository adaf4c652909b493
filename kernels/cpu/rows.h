#pragma once

#include <algorithm>

#include "base/parallel.h"

namespace braid::kernels::cpu {

/// Copying fewer numbers than these from and to caches is done sooner by one thread than by waking the others. A kernel
/// takes about as long on either side of the border, so that its time grows with the work without a bend.
inline constexpr std::int64_t kNumbersWorthThreads = 24576;

/// A number that goes through a reduction, a root, an exponential or a draw, or comes from memory, counts as so many
/// that are copied: it takes two to five times as long, and two threads halve that as they do not halve copying.
inline constexpr std::int64_t kCopies = 6;

/// Calls body(t) for each of `rows` rows that take as long as copying `columns` numbers, on the worker threads when
/// that pays.
template <typename Body>
void for_rows(std::int64_t rows, std::int64_t columns, const Body& body) {
  const std::int64_t least = kNumbersWorthThreads / std::max<std::int64_t>(columns, 1) + 1;
  parallel_for(rows, std::max<std::int64_t>(least, 2), body);
}

inline constexpr std::int64_t kPiece = 2048;

/// The same for `count` numbers in a row, each of which takes as long as copying `copies`: calls body(first, last) for
/// pieces of kPiece numbers, and what is left.
template <typename Body>
void for_pieces(std::int64_t count, std::int64_t copies, const Body& body) {
  for_rows((count + kPiece - 1) / kPiece, copies * kPiece,
           [&](std::int64_t piece) { body(piece * kPiece, std::min(count, (piece + 1) * kPiece)); });
}

}  // namespace braid::kernels::cpu
