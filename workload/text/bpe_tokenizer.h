#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "workload/text/added_tokens.h"
#include "workload/text/bpe.h"
#include "workload/text/text_steps.h"
#include "workload/text/tokenizer.h"

namespace braid::workload {

/// Hugging Face's `tokenizers` with a model of byte pairs: added tokens are cut out of the text, what is between them
/// is normalized, cut into words, and each word into tokens.
class BpeTokenizer : public Tokenizer {
 public:
  /// `added` asks `model` for ids.
  BpeTokenizer(TokenizerFacts facts, std::unique_ptr<const Bpe> model, AddedVocabulary added, NormalizeSteps normalizer,
               CutSteps cut);

  std::vector<std::int32_t> encode(std::string_view text) const override;
  std::optional<std::int32_t> token_id(std::string_view token) const override { return added_.id(token); }

 private:
  void encode_plain(AlignedText text, std::vector<std::int32_t>& ids) const;

  std::unique_ptr<const Bpe> model_;
  AddedVocabulary added_;
  NormalizeSteps normalizer_;
  CutSteps cut_;
  TokenFinder in_text_, in_normalized_text_;
};

}  // namespace braid::workload
