#pragma once

#include <cstdint>
#include <filesystem>
#include <utility>
#include <vector>

#include "base/node.h"
#include "workload/text/added_tokens.h"
#include "workload/text/bpe.h"

namespace braid::workload {

/// What a tokenizer.json of Hugging Face's `tokenizers` says, with a model of byte pairs. What it says of truncation,
/// padding and decoding changes no ids and is not here.
struct TokenizerJson {
  Bpe::Vocabulary vocabulary;
  Bpe::Merges merges;  ///< of tokens in the vocabulary
  Bpe::Rules rules;
  std::vector<std::pair<std::int32_t, AddedToken>> added;  ///< with the ids that the file gives them
  Node normalizer, pre_tokenizer, post_processor;          ///< null where there is none
  bool by_bytes = false;                                   ///< some part of it is ByteLevel
};

/// Throws Error "FILE:LINE: what; remedy" when the file is broken, its model is of another kind, or it sets a key that
/// would change ids and is not built in.
TokenizerJson read_tokenizer_json(const std::filesystem::path& file);

/// A token as {"content", "lstrip", ...}; what is left out is as Hugging Face has it.
AddedToken read_added_token(const Node& node);
/// Throws Error when it is no id.
std::int32_t read_token_id(const Node& node);

/// What a post-processor puts around a text.
struct Frame {
  std::vector<std::int32_t> before, after;
};
/// Null, ByteLevel, TemplateProcessing, and Sequence of these. Throws Error that names what is another.
Frame read_post_processor(const Node& node);

}  // namespace braid::workload
