#pragma once

#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "base/node.h"
#include "workload/text/aligned_text.h"

/// What is done to a text before byte-pair encoding, step by step, as the "normalizer" and the "pre_tokenizer" of a
/// tokenizer.json say it.
namespace braid::workload {

/// A text that is cut into words, each of which is encoded alone. Words lie in order; what is between them is gone.
struct Words {
  AlignedText text;
  std::vector<ByteRange> ranges;
};

using NormalizeSteps = std::vector<std::function<AlignedText(AlignedText)>>;
using CutSteps = std::vector<std::function<Words(Words)>>;

/// Null, NFC, NFD, NFKC, NFKD, Prepend, Replace of a string, and Sequence of these.
/// Throws Error that names what is another.
NormalizeSteps read_normalizer(const Node& node);

/// Null, ByteLevel, Split, Digits, Metaspace, and Sequence of these. Throws Error that names what is another.
CutSteps read_pre_tokenizer(const Node& node);

NormalizeSteps nfc_normalizer();
CutSteps byte_level_cut(bool add_prefix_space);                              ///< GPT-2's
CutSteps pattern_cut(const std::string& expression, bool add_prefix_space);  ///< then by bytes: Qwen2's
enum class PrefixSpace { always, first, never };
CutSteps metaspace_cut(PrefixSpace prefix);  ///< Llama's, without a cut

AlignedText normalized(AlignedText text, const NormalizeSteps& steps);

/// Where `wanted`, which is not empty, stands in the text, from left to right without an overlap.
std::vector<ByteRange> find_string(std::string_view text, std::string_view wanted);

/// The Error for what a tokenizer's file asks for and is not built in; says what to do instead.
Error not_built_in(const Node& node, const std::string& what);
/// Throws not_built_in when a key of `node`, which the message calls `what`, is set and not among those known.
void refuse_other_keys(const Node& node, std::string_view what, std::initializer_list<std::string_view> known);

}  // namespace braid::workload
