#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "workload/text/tokenizer.h"
#include "workload/texts.h"

namespace braid::workload {

/// Bytes, of which two line breaks are one token, and special tokens; their names in text are these tokens, as in most
/// models' tokenizers, unless it spells them out. A special token's id is behind the bytes, in the order given.
class MarkTokenizer : public Tokenizer {
 public:
  static constexpr std::int32_t kLineBreaks = 256, kFirstMark = 257;

  explicit MarkTokenizer(std::vector<std::string> marks = {"<bos>", "<eos>", "<|im_start|>", "<|im_end|>"},
                         std::string chat_template = "", bool spells_out = false)
      : Tokenizer({.bos = kFirstMark,
                   .eos = kFirstMark + 1,
                   .prepends_bos = true,
                   .vocabulary = kFirstMark + static_cast<std::int64_t>(marks.size()),
                   .chat_template = std::move(chat_template)}),
        marks_(std::move(marks)),
        spells_out_(spells_out) {}

  std::vector<std::int32_t> encode(std::string_view text) const override {
    std::vector<std::int32_t> ids;
    while (!text.empty()) {
      std::size_t length = 1;
      std::int32_t id = static_cast<unsigned char>(text[0]);
      for (std::size_t i = 0; i < marks_.size() && !spells_out_; ++i) {
        if (!text.starts_with(marks_[i])) continue;
        length = marks_[i].size();
        id = kFirstMark + static_cast<std::int32_t>(i);
      }
      if (text.starts_with("\n\n")) {
        length = 2;
        id = kLineBreaks;
      }
      ids.push_back(id);
      text.remove_prefix(length);
    }
    return ids;
  }

  std::optional<std::int32_t> token_id(std::string_view token) const override {
    for (std::size_t i = 0; i < marks_.size(); ++i) {
      if (token == marks_[i]) return kFirstMark + static_cast<std::int32_t>(i);
    }
    return std::nullopt;
  }

  std::string text_of(std::int32_t id) const {
    if (id < kLineBreaks) return std::string(1, static_cast<char>(id));
    return id == kLineBreaks ? "\n\n" : marks_[static_cast<std::size_t>(id - kFirstMark)];
  }

 private:
  std::vector<std::string> marks_;
  bool spells_out_;
};

}  // namespace braid::workload
