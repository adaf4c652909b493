#pragma once

#include <string>
#include <utility>
#include <vector>

#include "workload/text/added_tokens.h"
#include "workload/text/tokenizer.h"
#include "workload/text/tokenizer_config.h"

namespace braid::workload {

/// What a class of Hugging Face's library takes for granted where a folder is silent.
struct TokenDefaults {
  std::vector<std::pair<std::string, std::string>> named;  ///< {"bos_token", "<s>"}
  std::vector<SpecialToken> extra;
  bool names_again = false;  ///< special tokens are added once more by their mere names
};

/// Adds what a folder puts beside the model's vocabulary, in the order in which Hugging Face's library does; `listed`
/// are the tokens that tokenizer.json lists. The facts say which are BOS and EOS, and the chat template.
/// Throws Error when a token comes to another id than the folder says.
TokenizerFacts add_folder_tokens(AddedVocabulary& vocabulary, const TokenizerConfig& config,
                                 const std::vector<std::pair<std::int32_t, AddedToken>>& listed,
                                 const TokenDefaults& defaults, const std::filesystem::path& folder);

/// Adds a token that is to have an id. Throws Error when it comes to another.
void add_with_id(AddedVocabulary& vocabulary, const AddedToken& token, std::int32_t id,
                 const std::filesystem::path& folder);

}  // namespace braid::workload
