#pragma once

#include <optional>
#include <span>
#include <string>

#include "workload/sample.h"
#include "workload/tokenizer.h"

namespace braid::workload {

/// How the messages of a conversation are framed with special tokens.
enum class ChatLayout {
  chatml,  ///< <|im_start|>ROLE\nCONTENT<|im_end|>\n
  llama3,  ///< <|start_header_id|>ROLE<|end_header_id|>\n\nCONTENT<|eot_id|>, with CONTENT trimmed
};

struct ChatFormat {
  ChatLayout layout = ChatLayout::chatml;
  bool begins_with_bos = false;
};

struct Message {
  std::string role;
  std::string content;
};

/// The layout that the tokenizer's chat template shows, or `chosen` when given; BOS comes first when the template says
/// so, and in Llama-3's layout. What else a template may add (a default system message, today's date) is left out.
/// Throws Error that lists the layouts when the template shows neither.
ChatFormat chat_format(const Tokenizer& tokenizer, std::optional<ChatLayout> chosen);

/// The conversation as tokens; only what the assistant says, and the token that ends its turn, is supervised.
/// Throws Error when the tokenizer lacks a special token of the layout.
Sample encode_chat(std::span<const Message> messages, const ChatFormat& format, const Tokenizer& tokenizer);

}  // namespace braid::workload
