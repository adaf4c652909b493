#pragma once

#include <span>
#include <string_view>

#include "workload/sample.h"
#include "workload/text/message.h"
#include "workload/text/tokenizer.h"

namespace braid::workload {

/// How the messages of a conversation are framed with special tokens.
enum class ChatLayout {
  chatml,  ///< <|im_start|>ROLE\nCONTENT<|im_end|>\n
  llama3,  ///< BOS, then <|start_header_id|>ROLE<|end_header_id|>\n\nCONTENT<|eot_id|>, with CONTENT trimmed
};

/// The layout as a chat template.
std::string_view layout_template(ChatLayout layout);

/// Throws Error when the tokenizer lacks a special token of the layout.
void check_layout_tokens(ChatLayout layout, const Tokenizer& tokenizer);

/// The conversation as tokens, with the special tokens by their ids: for tokenizers that spell their names out in text.
/// Only what the assistant says in turns that are learned, and the token that ends such a turn, is supervised.
Sample encode_by_layout(std::span<const Message> messages, ChatLayout layout, bool begins_with_bos,
                        const Tokenizer& tokenizer);

}  // namespace braid::workload
