#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "costmodel/shapes/backbone.h"

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

  /// The ids of a text: no BOS or EOS is added. The names of special and added tokens in it are these tokens, as in
  /// Hugging Face's library; only a tokenizer of bytes takes them for text. Throws Error when the tokenizer is not
  /// built in.
  virtual std::vector<std::int32_t> encode(std::string_view text) const = 0;
  /// The id of a token by its name, special tokens ("<|im_start|>") included.
  virtual std::optional<std::int32_t> token_id(std::string_view token) const = 0;

  virtual const TokenizerFacts& facts() const { return facts_; }

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

/// The tokenizer in a backbone's folder: braid_tokenizer.json where there is one, else tokenizer.json, else
/// tokenizer.model (huggingface_tokenizer.h). It is read when something is first asked of it, since a dataset of
/// input_ids needs none: only then is Error thrown, where there is none that is built in (or `folder` is empty, for a
/// built-in shape), where its files are broken and where its ids are not all in the backbone's vocabulary. Threads may
/// ask at once.
std::unique_ptr<Tokenizer> make_tokenizer(const std::filesystem::path& folder,
                                          const costmodel::BackboneShape& backbone);

/// A tokenizer whose ids 0 to 255 are the bytes of UTF-8. `file` is JSON: {"type": "byte", "bos": 256, "eos": 257,
/// "add_bos": true, and any special tokens "<...>": id}; all but `type` may be left out.
std::unique_ptr<Tokenizer> make_byte_tokenizer(const std::filesystem::path& file);
/// The braid_tokenizer.json of a new backbone: BOS 256, EOS 257, "<|im_start|>" 258, "<|im_end|>" 259.
std::string byte_tokenizer_json();
inline constexpr std::int64_t kByteVocabulary = 260;

}  // namespace braid::workload
