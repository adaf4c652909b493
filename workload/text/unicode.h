#pragma once

#include <optional>
#include <string_view>

#include "workload/text/aligned_text.h"

/// What tokenizers ask of Unicode; the texts are UTF-8.
namespace braid::workload {

enum class NormalForm { nfc, nfd, nfkc, nfkd };

/// The text in a normal form; a character that was composed or taken apart stands for all that it was made of.
AlignedText normalized(AlignedText text, NormalForm form);

/// How many bytes of White_Space the text begins or ends with.
std::size_t leading_space(std::string_view text);
std::size_t trailing_space(std::string_view text);

/// Whether the text begins or ends with a character of a word: letters, marks, digits, connectors, joiners.
bool begins_with_word(std::string_view text);
bool ends_with_word(std::string_view text);

/// Bytes of the character that begins the text, which is not empty; 1 where it is no UTF-8.
std::size_t character_size(std::string_view text);

}  // namespace braid::workload
