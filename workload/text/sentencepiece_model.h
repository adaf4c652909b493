#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "workload/text/bpe.h"

namespace braid::workload {

/// What is read of a SentencePiece model's file besides what its library tells.
struct SentencePieceModel {
  enum class PieceType { normal = 1, unknown = 2, control = 3, user_defined = 4, unused = 5, byte = 6 };
  struct Piece {
    std::string text;
    PieceType type = PieceType::normal;
  };

  std::vector<Piece> pieces;  ///< ids are places
  bool merges_pairs = false;  ///< byte-pair encoding; else a unigram model or another
  bool add_dummy_prefix = true;
};

/// `file` are the bytes of a ModelProto, in protocol buffers. Throws Error, without a place, when they end too soon.
SentencePieceModel parse_sentencepiece_model(std::string_view file);

/// The same model, in which no blank is put before a text.
std::string without_dummy_prefix(std::string file);

/// The merges that Hugging Face's library makes of a vocabulary for its LlamaTokenizer: of each piece all pairs of
/// pieces that make it, in the order of the pieces' ids.
Bpe::Merges merges_of(const Bpe::Vocabulary& vocabulary);

}  // namespace braid::workload
