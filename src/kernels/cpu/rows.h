#pragma once

#include <algorithm>

#include "base/parallel.h"

namespace braid::kernels::cpu {

/// Fewer numbers than these are done sooner by one thread than by waking the others.
inline constexpr std::int64_t kNumbersWorthThreads = 16384;

/// A number that goes through a reduction, a root or an exponential takes about as long as so many that are copied.
inline constexpr std::int64_t kCopies = 2;

/// Calls body(t) for each of `rows` rows that take as long as copying `columns` numbers, on the worker threads when
/// that pays.
template <typename Body>
void for_rows(std::int64_t rows, std::int64_t columns, const Body& body) {
  const std::int64_t least = kNumbersWorthThreads / std::max<std::int64_t>(columns, 1) + 1;
  parallel_for(rows, std::max<std::int64_t>(least, 2), body);
}

inline constexpr std::int64_t kPiece = 8192;

/// The same for `count` numbers in a row: calls body(first, last) for pieces of kPiece numbers, and what is left.
template <typename Body>
void for_pieces(std::int64_t count, const Body& body) {
  for_rows((count + kPiece - 1) / kPiece, kPiece,
           [&](std::int64_t piece) { body(piece * kPiece, std::min(count, (piece + 1) * kPiece)); });
}

}  // namespace braid::kernels::cpu
