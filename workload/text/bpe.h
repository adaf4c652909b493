#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace braid::workload {

/// Byte-pair encoding as Hugging Face's `tokenizers` does it: a word falls into characters, and of all neighbours that
/// may be merged those of the lowest rank are, the leftmost first.
class Bpe {
 public:
  struct Rules {
    std::optional<std::string> unknown;  ///< stands for characters that are no tokens; without, they vanish
    bool fuse_unknown = false;           ///< neighbours among them become one
    bool byte_fallback = false;          ///< first their bytes are tried, as "<0x0A>"
    bool ignore_merges = false;          ///< a word that is a token is that, whatever merging gives
  };
  using Vocabulary = std::vector<std::pair<std::string, std::int32_t>>;
  using Merges = std::vector<std::pair<std::string, std::string>>;

  /// One token of a word, and how many of its bytes it is.
  struct Part {
    std::int32_t id = 0;
    std::uint32_t bytes = 0;

    bool operator==(const Part&) const = default;
  };

  /// `merges` from the lowest rank on. Throws Error, without a place, when a merge names or makes what is no token.
  Bpe(const Vocabulary& vocabulary, const Merges& merges, Rules rules);

  /// Takes O(n log n) for n bytes; short words are remembered.
  std::vector<Part> encode(std::string_view word) const;

  std::optional<std::int32_t> id(std::string_view token) const;
  std::int64_t size() const { return static_cast<std::int64_t>(ids_.size()); }
  /// One past the largest id.
  std::int64_t end() const { return end_; }

 private:
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
  };
  template <typename Value>
  using ByText = std::unordered_map<std::string, Value, Hash, std::equal_to<>>;
  struct Merge {
    std::int32_t rank = 0, id = 0;
  };

  static std::uint64_t pair_of(std::int32_t left, std::int32_t right) {
    return static_cast<std::uint64_t>(static_cast<std::uint32_t>(left)) << 32 | static_cast<std::uint32_t>(right);
  }
  std::vector<Part> characters(std::string_view word) const;
  void merge(std::vector<Part>& parts) const;

  Rules rules_;
  ByText<std::int32_t> ids_;
  std::int64_t end_ = 0;
  std::optional<std::int32_t> unknown_;
  std::vector<std::optional<std::int32_t>> bytes_;  // of byte fallback
  std::unordered_map<std::uint64_t, Merge> merges_;
  mutable std::mutex mutex_;
  mutable ByText<std::vector<Part>> known_words_;
};

}  // namespace braid::workload
