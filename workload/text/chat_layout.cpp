#include "workload/text/chat_layout.h"

#include <vector>

#include "base/error.h"
#include "workload/names.h"
#include "workload/text/jinja/python_text.h"

namespace braid::workload {
namespace {

constexpr std::string_view kChatMlTemplate =
    "{% for message in messages %}"
    "{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + '\\n' }}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}";
constexpr std::string_view kLlama3Template =
    "{{ bos_token }}"
    "{% for message in messages %}"
    "{{ '<|start_header_id|>' + message['role'] + '<|end_header_id|>\\n\\n' + message['content'] | trim + '<|eot_id|>' "
    "}}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}{% endif %}";

std::vector<std::string_view> marks_of(ChatLayout layout) {
  if (layout == ChatLayout::chatml) return {"<|im_start|>", "<|im_end|>"};
  return {"<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"};
}

std::int32_t special(const Tokenizer& tokenizer, std::string_view token, ChatLayout layout) {
  if (const auto id = tokenizer.token_id(token)) return *id;
  throw error(
      "the tokenizer has no {}, which the {} layout needs; choose another with the task's 'chat', or give "
      "input_ids, which scripts/pretokenize.py makes",
      token, name_of(layout, kChatLayouts));
}

void append_chatml(Sample& sample, const Message& message, const Tokenizer& tokenizer) {
  const float weight = message.learned() ? message.weight : 0;
  const auto [header, content] = encode_parts(tokenizer, message.role + "\n", message.content);
  sample.append(special(tokenizer, "<|im_start|>", ChatLayout::chatml), 0);
  sample.append(header, 0);
  sample.append(content, weight);
  sample.append(special(tokenizer, "<|im_end|>", ChatLayout::chatml), weight);
  sample.append(tokenizer.encode("\n"), 0);
}

void append_llama3(Sample& sample, const Message& message, const Tokenizer& tokenizer) {
  const float weight = message.learned() ? message.weight : 0;
  const auto [header, content] = encode_parts(tokenizer, "\n\n", jinja::strip(message.content));
  sample.append(special(tokenizer, "<|start_header_id|>", ChatLayout::llama3), 0);
  sample.append(tokenizer.encode(message.role), 0);
  sample.append(special(tokenizer, "<|end_header_id|>", ChatLayout::llama3), 0);
  sample.append(header, 0);
  sample.append(content, weight);
  sample.append(special(tokenizer, "<|eot_id|>", ChatLayout::llama3), weight);
}

}  // namespace

std::string_view layout_template(ChatLayout layout) {
  return layout == ChatLayout::chatml ? kChatMlTemplate : kLlama3Template;
}

void check_layout_tokens(ChatLayout layout, const Tokenizer& tokenizer) {
  for (const std::string_view mark : marks_of(layout)) special(tokenizer, mark, layout);
}

Sample encode_by_layout(std::span<const Message> messages, ChatLayout layout, bool begins_with_bos,
                        const Tokenizer& tokenizer) {
  Sample sample;
  if (begins_with_bos && tokenizer.facts().bos) sample.append(*tokenizer.facts().bos, 0);
  for (const Message& message : messages) {
    if (layout == ChatLayout::chatml) {
      append_chatml(sample, message, tokenizer);
    } else {
      append_llama3(sample, message, tokenizer);
    }
  }
  return sample;
}

}  // namespace braid::workload
