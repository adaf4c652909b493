#include "workload/chat.h"

#include <string_view>

#include "base/error.h"

namespace braid::workload {
namespace {

std::int32_t special(const Tokenizer& tokenizer, std::string_view token, std::string_view layout) {
  if (const auto id = tokenizer.token_id(token)) return *id;
  throw error(
      "the tokenizer has no {}, which the {} layout needs; choose another with the task's 'chat', or give "
      "input_ids, which scripts/pretokenize.py makes",
      token, layout);
}

std::string_view trim(std::string_view text) {
  constexpr std::string_view kSpace = " \t\n\r\f\v";
  const auto first = text.find_first_not_of(kSpace);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

void append_chatml(Sample& sample, const Message& message, const Tokenizer& tokenizer) {
  const bool supervised = message.role == "assistant";
  const auto [header, content] = encode_parts(tokenizer, message.role + "\n", message.content);
  sample.append(special(tokenizer, "<|im_start|>", "chatml"), false);
  sample.append(header, false);
  sample.append(content, supervised);
  sample.append(special(tokenizer, "<|im_end|>", "chatml"), supervised);
  sample.append(tokenizer.encode("\n"), false);
}

void append_llama3(Sample& sample, const Message& message, const Tokenizer& tokenizer) {
  const bool supervised = message.role == "assistant";
  const auto [header, content] = encode_parts(tokenizer, "\n\n", trim(message.content));
  sample.append(special(tokenizer, "<|start_header_id|>", "llama3"), false);
  sample.append(tokenizer.encode(message.role), false);
  sample.append(special(tokenizer, "<|end_header_id|>", "llama3"), false);
  sample.append(header, false);
  sample.append(content, supervised);
  sample.append(special(tokenizer, "<|eot_id|>", "llama3"), supervised);
}

}  // namespace

ChatFormat chat_format(const Tokenizer& tokenizer, std::optional<ChatLayout> chosen) {
  const std::string& shown = tokenizer.facts().chat_template;
  const auto shows = [&](std::string_view token) { return shown.find(token) != std::string::npos; };
  if (!chosen && shows("<|im_start|>")) chosen = ChatLayout::chatml;
  if (!chosen && shows("<|start_header_id|>")) chosen = ChatLayout::llama3;
  if (!chosen) {
    throw error(
        "the chat layout of this backbone is {}; set the task's 'chat' to chatml or llama3, or give input_ids, "
        "which scripts/pretokenize.py makes",
        shown.empty() ? "unknown (it has no chat template)" : "not one that is built in");
  }
  return {*chosen, *chosen == ChatLayout::llama3 || shows("bos_token")};
}

Sample encode_chat(std::span<const Message> messages, const ChatFormat& format, const Tokenizer& tokenizer) {
  Sample sample;
  if (format.begins_with_bos && tokenizer.facts().bos) sample.append(*tokenizer.facts().bos, false);
  for (const Message& message : messages) {
    switch (format.layout) {
      case ChatLayout::chatml:
        append_chatml(sample, message, tokenizer);
        break;
      case ChatLayout::llama3:
        append_llama3(sample, message, tokenizer);
        break;
    }
  }
  return sample;
}

}  // namespace braid::workload
