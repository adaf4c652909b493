#pragma once

#include <filesystem>
#include <memory>
#include <string_view>

#include "workload/text/bpe.h"
#include "workload/text/folder_tokens.h"
#include "workload/text/text_steps.h"
#include "workload/text/tokenizer.h"
#include "workload/text/tokenizer_config.h"

namespace braid::workload {

/// What Hugging Face's library (transformers 5) makes a tokenizer with: for some classes it takes a file's vocabulary
/// and merges alone and has the rest by heart.
enum class TokenizerClass { as_it_stands, llama, qwen2, gpt2 };

/// The class that a folder's tokenizer is taken for; `by_bytes` says whether its tokenizer.json is ByteLevel.
/// Throws Error when it is one that is not built in.
TokenizerClass tokenizer_class_of(const TokenizerConfig& config, bool by_bytes, const std::filesystem::path& folder);

/// What a class does with a text, of which a folder's files say nothing.
struct TokenizerSteps {
  Bpe::Rules rules;
  NormalizeSteps normalizer;
  CutSteps cut;
  TokenDefaults tokens;
};
/// Of a class other than as_it_stands.
TokenizerSteps steps_of(TokenizerClass tokenizer_class, const TokenizerConfig& config);

/// The tokenizer of a folder with a tokenizer.json or, where there is none, a tokenizer.model, and with what lies
/// beside them: tokenizer_config.json and its like. Throws Error that names what is broken or not built in.
std::unique_ptr<Tokenizer> make_huggingface_tokenizer(const std::filesystem::path& folder);

}  // namespace braid::workload
