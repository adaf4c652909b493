#pragma once

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <string>
#include <string_view>
#include <vector>

namespace braid::workload {

/// A stretch of text on its way to tokens. Whatever is done to it, each byte of `text` knows where the original bytes
/// end that it stands for.
struct AlignedText {
  std::string text;
  std::vector<std::uint32_t> ends;  ///< for each byte of `text`, past its original bytes
  std::uint32_t begin = 0;          ///< in the original, of the first byte

  /// A stretch of the original at `at`, as it stands.
  static AlignedText of(std::string_view original, std::size_t at) {
    AlignedText aligned{std::string(original), std::vector<std::uint32_t>(original.size()),
                        static_cast<std::uint32_t>(at)};
    std::iota(aligned.ends.begin(), aligned.ends.end(), static_cast<std::uint32_t>(at) + 1);
    return aligned;
  }

  /// Where in the original the byte at `place` begins.
  std::uint32_t begin_of(std::size_t place) const { return place == 0 ? begin : ends[place - 1]; }

  /// Puts bytes behind, all of which stand for original bytes that end at `end`.
  void append(std::string_view bytes, std::uint32_t end) {
    text += bytes;
    ends.insert(ends.end(), bytes.size(), end);
  }

  AlignedText part(std::size_t from, std::size_t to) const {
    return {text.substr(from, to - from),
            {ends.begin() + static_cast<std::ptrdiff_t>(from), ends.begin() + static_cast<std::ptrdiff_t>(to)},
            begin_of(from)};
  }
};

/// From one byte of a stretch up to another.
struct ByteRange {
  std::size_t begin = 0, end = 0;

  bool operator==(const ByteRange&) const = default;
};

}  // namespace braid::workload
