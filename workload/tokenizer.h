#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "costmodel/backbone.h"

namespace braid::workload {

/// What is known of a tokenizer besides how it cuts text.
struct TokenizerFacts {
  std::optional<std::int32_t> bos;
  std::optional<std::int32_t> eos;
  bool prepends_bos = false;    ///< text samples begin with `bos`
  std::int64_t vocabulary = 0;  ///< encode gives ids below this; added special tokens may lie above
  std::string chat_template;    ///< Jinja, as Hugging Face stores it; empty when there is none
};

/// Text to token ids. Immutable, so that threads may share one.
class Tokenizer {
 public:
  virtual ~Tokenizer() = default;
  Tokenizer(const Tokenizer&) = delete;
  Tokenizer& operator=(const Tokenizer&) = delete;

  /// The ids of plain text: no BOS or EOS is added, and a control token's name in it is text like any other (only what
  /// a SentencePiece model calls user-defined pieces is matched). Throws Error when the tokenizer is not built in.
  virtual std::vector<std::int32_t> encode(std::string_view text) const = 0;
  /// The id of a token by its name, special tokens ("<|im_start|>") included.
  virtual std::optional<std::int32_t> token_id(std::string_view token) const = 0;

  const TokenizerFacts& facts() const { return facts_; }

 protected:
  explicit Tokenizer(TokenizerFacts facts) : facts_(std::move(facts)) {}

 private:
  TokenizerFacts facts_;
};

/// The ids of `before`, and those that follow them when `after` is put behind it. The two together are the ids of
/// `before + after`, unless a token would reach over the border: then each part is encoded alone, since at inference
/// the model sees `before` alone.
std::pair<std::vector<std::int32_t>, std::vector<std::int32_t>> encode_parts(const Tokenizer& tokenizer,
                                                                             std::string_view before,
                                                                             std::string_view after);

/// The tokenizer in a backbone's folder: byte-level when it holds braid_tokenizer.json, SentencePiece when it holds
/// tokenizer.model; else (and for an empty `folder`, a built-in shape) one that only refuses text, since a dataset of
/// input_ids needs none. Throws Error when a token id lies outside the backbone's vocabulary or a file is broken.
std::unique_ptr<Tokenizer> make_tokenizer(const std::filesystem::path& folder,
                                          const costmodel::BackboneShape& backbone);

/// A tokenizer whose ids 0 to 255 are the bytes of UTF-8. `file` is JSON: {"type": "byte", "bos": 256, "eos": 257,
/// "add_bos": true, and any special tokens "<...>": id}; all but `type` may be left out.
std::unique_ptr<Tokenizer> make_byte_tokenizer(const std::filesystem::path& file);
/// The braid_tokenizer.json of a new backbone: BOS 256, EOS 257, "<|im_start|>" 258, "<|im_end|>" 259.
std::string byte_tokenizer_json();
inline constexpr std::int64_t kByteVocabulary = 260;

/// `folder`/tokenizer.model, with what Hugging Face's files beside it say: tokenizer_config.json (whether BOS is
/// prepended, yes when it is silent; which tokens are BOS and EOS; the chat template) and added tokens.
std::unique_ptr<Tokenizer> make_sentencepiece_tokenizer(const std::filesystem::path& folder);

}  // namespace braid::workload
