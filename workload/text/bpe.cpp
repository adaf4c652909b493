#include "workload/text/bpe.h"

#include <algorithm>
#include <queue>

#include "base/error.h"
#include "workload/text/unicode.h"

namespace braid::workload {
namespace {

constexpr std::size_t kMostKnownWords = 1U << 16, kLongestKnownWord = 128;

/// A neighbour pair that may be merged.
struct Candidate {
  std::int32_t rank, left, id;

  /// The queue's top is the largest.
  bool operator<(const Candidate& other) const { return rank != other.rank ? rank > other.rank : left > other.left; }
};

}  // namespace

Bpe::Bpe(const Vocabulary& vocabulary, const Merges& merges, Rules rules) : rules_(std::move(rules)) {
  ids_.reserve(vocabulary.size());
  for (const auto& [token, token_id] : vocabulary) {
    ids_.insert_or_assign(token, token_id);
    end_ = std::max<std::int64_t>(end_, token_id + 1);
  }
  if (rules_.unknown) {
    unknown_ = id(*rules_.unknown);
    if (!unknown_) throw error("the vocabulary lacks the unknown token {}", *rules_.unknown);
  }
  for (int byte = 0; byte < 256; ++byte) bytes_.push_back(id(fmt::format("<0x{:02X}>", byte)));
  merges_.reserve(merges.size());
  std::int32_t rank = 0;
  for (const auto& [left, right] : merges) {
    const auto first = id(left), second = id(right), both = id(left + right);
    if (!first || !second || !both)
      throw error("the merge '{} {}' needs '{}', which is no token", left, right,
                  !first    ? left
                  : !second ? right
                            : left + right);
    merges_.insert_or_assign(pair_of(*first, *second), Merge{rank++, *both});
  }
}

std::optional<std::int32_t> Bpe::id(std::string_view token) const {
  const auto found = ids_.find(token);
  if (found == ids_.end()) return std::nullopt;
  return found->second;
}

std::vector<Bpe::Part> Bpe::encode(std::string_view word) const {
  if (word.empty()) return {};
  if (rules_.ignore_merges) {
    if (const auto whole = id(word)) return {{*whole, static_cast<std::uint32_t>(word.size())}};
  }
  const bool short_word = word.size() <= kLongestKnownWord;
  if (short_word) {
    const std::scoped_lock lock(mutex_);
    if (const auto known = known_words_.find(word); known != known_words_.end()) return known->second;
  }
  std::vector<Part> parts = characters(word);
  merge(parts);
  if (short_word) {
    const std::scoped_lock lock(mutex_);
    if (known_words_.size() == kMostKnownWords) known_words_.clear();
    known_words_.emplace(word, parts);
  }
  return parts;
}

std::vector<Bpe::Part> Bpe::characters(std::string_view word) const {
  std::vector<Part> parts;
  std::optional<Part> unknown;  // not among them yet
  const auto flush = [&] {
    if (unknown) parts.push_back(*unknown);
    unknown.reset();
  };
  for (std::size_t at = 0, size = 0; at < word.size(); at += size) {
    size = character_size(word.substr(at));
    const std::string_view character = word.substr(at, size);
    const auto bytes = static_cast<std::uint32_t>(size);
    if (const auto known = id(character)) {
      flush();
      parts.push_back({*known, bytes});
      continue;
    }
    const auto byte_id = [&](char byte) { return bytes_[static_cast<unsigned char>(byte)]; };
    if (rules_.byte_fallback && std::ranges::all_of(character, [&](char byte) { return byte_id(byte).has_value(); })) {
      // As in the original, an unknown character that waits comes behind these.
      for (const char byte : character) parts.push_back({*byte_id(byte), 1});
      continue;
    }
    if (!unknown_) {
      // It vanishes; its bytes are counted with what is before it, so that places stay true.
      if (!parts.empty()) parts.back().bytes += bytes;
      continue;
    }
    if (unknown && rules_.fuse_unknown) {
      unknown->bytes += bytes;
    } else {
      flush();
      unknown = Part{*unknown_, bytes};
    }
  }
  flush();
  return parts;
}

void Bpe::merge(std::vector<Part>& parts) const {
  const auto count = static_cast<std::int32_t>(parts.size());
  std::vector<std::int32_t> before(parts.size()), after(parts.size());
  std::priority_queue<Candidate> candidates;
  const auto consider = [&](std::int32_t left, std::int32_t right) {
    if (left < 0 || right >= count) return;
    const auto found =
        merges_.find(pair_of(parts[static_cast<std::size_t>(left)].id, parts[static_cast<std::size_t>(right)].id));
    if (found != merges_.end()) candidates.push({found->second.rank, left, found->second.id});
  };
  for (std::int32_t i = 0; i < count; ++i) {
    before[static_cast<std::size_t>(i)] = i - 1;
    after[static_cast<std::size_t>(i)] = i + 1;
    consider(i - 1, i);
  }
  while (!candidates.empty()) {
    const Candidate best = candidates.top();
    candidates.pop();
    const auto left = static_cast<std::size_t>(best.left);
    if (parts[left].bytes == 0 || after[left] >= count) continue;
    const auto right = static_cast<std::size_t>(after[left]);
    // One of the two may have been merged since.
    const auto found = merges_.find(pair_of(parts[left].id, parts[right].id));
    if (found == merges_.end() || found->second.id != best.id) continue;
    parts[left] = {best.id, parts[left].bytes + parts[right].bytes};
    parts[right].bytes = 0;
    after[left] = after[right];
    if (after[left] < count) before[static_cast<std::size_t>(after[left])] = best.left;
    consider(before[left], best.left);
    consider(best.left, after[left]);
  }
  std::erase_if(parts, [](const Part& part) { return part.bytes == 0; });
}

}  // namespace braid::workload
