#pragma once

#include <filesystem>
#include <memory>

#include "workload/text/tokenizer.h"
#include "workload/text/tokenizer_config.h"

namespace braid::workload {

/// The tokenizer of `folder`/tokenizer.model, a SentencePiece model, with what lies beside it. As transformers has it,
/// a LlamaTokenizer takes the model's pieces alone, to merge them in the order of their ids; another class encodes as
/// SentencePiece does what is between the added tokens. Throws Error that names what is broken or not built in.
std::unique_ptr<Tokenizer> make_sentencepiece_tokenizer(const std::filesystem::path& folder,
                                                        const TokenizerConfig& config);

}  // namespace braid::workload
