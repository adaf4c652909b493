#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "workload/sample.h"
#include "workload/text/chat_template.h"
#include "workload/text/tokenizer.h"

namespace braid::workload {

/// Bytes of a text.
struct TextSpan {
  std::size_t begin = 0, end = 0;

  bool operator==(const TextSpan&) const = default;
};

/// A conversation as text, and what of it is learned, in order and apart.
struct LaidOut {
  std::string text;
  std::vector<TextSpan> learned;
  std::vector<float> weights;  ///< of the losses of each
};

/// Lays a conversation out by a template. Of the assistant's turns those that are learned are what the template adds to
/// its generation prompt when the turn is appended; white space behind a turn's end mark belongs to the layout, since
/// generation has stopped by then. Throws Error where the template changes earlier text as the conversation grows, so
/// that there is no such part, and where it refuses the conversation.
LaidOut lay_out(const ChatTemplate& chat_template, std::span<const Message> messages);

/// The tokens of the text as one, supervised where they end within a learned span. A token that reaches over a span's
/// begin is part of it, one that reaches over its end is not. Throws Error where that cannot be told.
/// Cost: encodes the text up to each end of a span once more.
Sample encode_spans(const LaidOut& laid_out, const Tokenizer& tokenizer);

}  // namespace braid::workload
