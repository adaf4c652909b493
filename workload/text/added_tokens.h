#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "workload/text/aligned_text.h"

namespace braid::workload {

/// A token that is cut out of the text before anything else is done to it, as Hugging Face's `AddedToken`.
struct AddedToken {
  std::string content;
  bool left_strip = false, right_strip = false;  ///< white space beside it belongs to it
  bool single_word = false;                      ///< not where a word goes on beside it
  bool normalized = true;                        ///< it is looked for in the normalized text
  bool special = false;

  bool operator==(const AddedToken&) const = default;

  /// What a mere name of a special token stands for.
  static AddedToken named(std::string content) {
    return {.content = std::move(content), .normalized = false, .special = true};
  }
};

/// Looks for tokens in a text: the leftmost, and of those that begin there the longest.
class TokenFinder {
 public:
  /// `content` is what is looked for; of two tokens with the same the first counts.
  void add(const std::string& content, const AddedToken& token, std::int32_t id);

  /// A stretch of the text, and the token that it is, if it is one.
  struct Stretch {
    ByteRange range;
    std::optional<std::int32_t> id;
  };
  /// All of the text, in order; no stretch without a token is empty.
  std::vector<Stretch> split(std::string_view text) const;

 private:
  struct Place {
    std::map<char, std::size_t> next;
    std::optional<std::size_t> token;
  };
  /// The longest token that begins the text, and its size.
  std::optional<std::pair<std::size_t, std::size_t>> longest(std::string_view text) const;

  std::vector<Place> places_ = {{}};
  std::vector<std::pair<AddedToken, std::int32_t>> tokens_;
};

/// The tokens put beside a model's vocabulary, one after the other, as Hugging Face's `tokenizers` keeps them: a token
/// that the model knows keeps its id, another gets the next one.
class AddedVocabulary {
 public:
  using Model = std::function<std::optional<std::int32_t>(std::string_view)>;

  /// `model` gives the ids of the `model_size` tokens of the model.
  AddedVocabulary(Model model, std::int64_t model_size) : model_(std::move(model)), model_size_(model_size) {}

  /// A token given twice has the later's strips; whether it is looked for in the normalized text, the first says of
  /// special tokens. Returns its id; -1 for a token of nothing, which is left out.
  std::int32_t add(const AddedToken& token);
  bool has(const AddedToken& token) const;
  bool has_content(const std::string& content) const { return ids_.contains(content); }
  /// Of added tokens and the model's.
  std::optional<std::int32_t> id(std::string_view content) const;
  /// As it was added last.
  const AddedToken* token(const std::string& content) const;

  /// Finds those that are, or are not, looked for in the normalized text; `as_sought` makes what is looked for of what
  /// a token says.
  TokenFinder finder(bool normalized, const std::function<std::string(const std::string&)>& as_sought) const;

 private:
  Model model_;
  std::int64_t model_size_;
  std::unordered_map<std::string, std::int32_t> ids_;
  std::map<std::int32_t, AddedToken> tokens_;
  std::vector<AddedToken> special_, plain_;  // as first added
};

}  // namespace braid::workload
