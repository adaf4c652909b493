#include "workload/text/learned_spans.h"

#include <algorithm>

#include "base/error.h"
#include "workload/text/jinja/python_text.h"

namespace braid::workload {
namespace {

constexpr std::string_view kWithoutSpans =
    "give prompt and completion as lists of turns, of which only the completion's is learned, or give input_ids and "
    "labels";

/// What stands before the assistant's turn behind `earlier`; `text` is the rendering of all messages.
std::string before_turn(const ChatTemplate& chat_template, std::span<const Message> earlier, std::string_view text) {
  if (!earlier.empty()) return chat_template.render(earlier, true);
  // No template renders nothing at all: the generation prompt behind another message tells what it is.
  const std::vector<Message> probe = {{"user", "a"}};
  const std::string without = chat_template.render(probe, false);
  std::string prompt = chat_template.render(probe, true);
  if (prompt.starts_with(without)) prompt.erase(0, without.size());
  const std::size_t found = text.find(prompt);
  if (found == std::string_view::npos)
    throw error("the chat template begins message 0 otherwise than it begins an answer; {}", kWithoutSpans);
  return std::string(text.substr(0, found + prompt.size()));
}

bool begins_with(const std::vector<std::int32_t>& tokens, const std::vector<std::int32_t>& part) {
  return part.size() <= tokens.size() && std::equal(part.begin(), part.end(), tokens.begin());
}

/// How many of the text's tokens end within its first `border` bytes: those of the longest beginning whose own tokens
/// are the first of the text's.
std::size_t tokens_before(std::string_view text, std::size_t border, const std::vector<std::int32_t>& tokens,
                          const Tokenizer& tokenizer) {
  constexpr std::size_t kMostBack = 64;  // bytes; no token that reaches over a border is longer
  for (std::size_t at = border;; --at) {
    const bool within_character = at < text.size() && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80;
    if (!within_character) {
      const std::vector<std::int32_t> part = tokenizer.encode(text.substr(0, at));
      if (begins_with(tokens, part)) return part.size();
    }
    if (at == 0) return 0;
    if (border - at == kMostBack)
      throw error("the tokens of the assistant's turns cannot be told apart; {}", kWithoutSpans);
  }
}

}  // namespace

LaidOut lay_out(const ChatTemplate& chat_template, std::span<const Message> messages) {
  LaidOut laid_out{chat_template.render(messages, false), {}, {}};
  const std::string& text = laid_out.text;
  for (std::size_t i = 0; i < messages.size(); ++i) {
    if (!messages[i].learned()) continue;
    const std::string before = before_turn(chat_template, messages.first(i), text);
    const std::string whole = i + 1 == messages.size() ? text : chat_template.render(messages.first(i + 1), false);
    const std::string_view through = jinja::strip(whole, jinja::Ends::right);
    if (!through.starts_with(before) || !text.starts_with(through))
      throw error(
          "the chat template changes what precedes message {} or the message itself as the conversation grows, so its "
          "tokens cannot be told apart; {}",
          i, kWithoutSpans);
    laid_out.learned.push_back({before.size(), through.size()});
    laid_out.weights.push_back(messages[i].weight);
  }
  return laid_out;
}

Sample encode_spans(const LaidOut& laid_out, const Tokenizer& tokenizer) {
  const std::string& text = laid_out.text;
  const std::vector<std::int32_t> tokens = tokenizer.encode(text);
  std::vector<float> weights(tokens.size(), 0);
  for (std::size_t s = 0; s < laid_out.learned.size(); ++s) {
    const TextSpan& span = laid_out.learned[s];
    const std::size_t begin = tokens_before(text, span.begin, tokens, tokenizer);
    const std::size_t end = tokens_before(text, span.end, tokens, tokenizer);
    for (std::size_t i = begin; i < end; ++i) weights[i] = laid_out.weights[s];
  }
  Sample sample;
  for (std::size_t i = 0; i < tokens.size(); ++i) sample.append(tokens[i], weights[i]);
  return sample;
}

}  // namespace braid::workload
