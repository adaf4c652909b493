#include "workload/text/chat.h"

#include <algorithm>

#include "base/error.h"
#include "base/notice.h"
#include "workload/names.h"

namespace braid::workload {
namespace {

/// Conversations that tell layouts apart: with and without a system's turn, and with white space that may be trimmed.
const std::vector<std::vector<Message>>& probes() {
  static const std::vector<std::vector<Message>> all = {
      {{"user", " a\n"}, {"assistant", " b\n"}, {"user", "c"}, {"assistant", "d"}},
      {{"system", " e\n"}, {"user", "f"}, {"assistant", "g"}},
      {{"user", "h"}},
  };
  return all;
}

/// The texts of the probes, with and without a generation prompt; none for those that are refused.
std::vector<std::optional<std::string>> probe(const ChatTemplate& chat_template) {
  std::vector<std::optional<std::string>> texts;
  for (const auto& messages : probes()) {
    for (const bool prompt : {false, true}) {
      try {
        texts.emplace_back(chat_template.render(messages, prompt));
      } catch (const Error&) {
        texts.emplace_back();
      }
    }
  }
  return texts;
}

std::string text_of_field(const jinja::Fields& fields, std::string_view name) {
  const jinja::Value* found = jinja::find_field(fields, name);
  return found && found->as_text() ? *found->as_text() : "";
}

ChatTemplate template_of(ChatLayout layout, const jinja::Fields& special_tokens) {
  return ChatTemplate(layout_template(layout), {.file = name_of(layout, kChatLayouts)}, special_tokens);
}

/// What stands between < and >, or [ and ], without white space in it.
std::vector<std::string_view> marks_in(std::string_view text) {
  constexpr std::string_view kOpening = "<[", kClosing = ">]";
  std::vector<std::string_view> marks;
  for (std::size_t begin = 0; begin < text.size(); ++begin) {
    const std::size_t kind = kOpening.find(text[begin]);
    if (kind == std::string_view::npos) continue;
    const std::size_t end = text.find_first_of(std::string(1, kClosing[kind]) + " \n\t", begin);
    if (end != std::string_view::npos && text[end] == kClosing[kind])
      marks.push_back(text.substr(begin, end + 1 - begin));
  }
  return marks;
}

}  // namespace

Chat::Chat(const std::filesystem::path& folder, const Tokenizer& tokenizer, std::optional<ChatLayout> chosen)
    : tokenizer_(tokenizer), chosen_(chosen) {
  const FolderChat said = read_folder_chat(folder, tokenizer);
  if (chosen) {
    choose(*chosen, said);
  } else if (!said.text.empty()) {
    template_.emplace(said.text, said.source, said.special_tokens);
    bos_ = text_of_field(said.special_tokens, "bos_token");
  }
  if (template_) find_spelt_out(said);
}

void Chat::choose(ChatLayout chosen, const FolderChat& folder) {
  check_layout_tokens(chosen, tokenizer_);
  const std::string name = name_of(chosen, kChatLayouts);
  const std::string bos = text_of_field(folder.special_tokens, "bos_token");
  template_.emplace(template_of(chosen, folder.special_tokens));
  bool begins_with_bos = chosen == ChatLayout::llama3;
  if (!folder.text.empty()) {
    try {
      auto shown = probe(ChatTemplate(folder.text, folder.source, folder.special_tokens));
      if (chosen == ChatLayout::chatml && !bos.empty()) {
        begins_with_bos =
            std::any_of(shown.begin(), shown.end(), [&](auto& text) { return text && text->starts_with(bos); });
        if (begins_with_bos)
          template_.emplace("{{ bos_token }}" + std::string(layout_template(chosen)), jinja::Source{.file = name},
                            folder.special_tokens);
      }
      if (shown != probe(*template_))
        notice(
            fmt::format("{}: this chat template lays conversations out otherwise than {}, which is taken as the task's "
                        "'chat' says",
                        folder.source.place(1), name));
    } catch (const Error&) {
      notice(
          fmt::format("{}: this chat template is not one that braid can render; {} is taken as the task's 'chat' says",
                      folder.source.place(1), name));
    }
  }
  if (begins_with_bos) bos_ = bos;
}

void Chat::find_spelt_out(const FolderChat& folder) {
  std::string text = bos_ + text_of_field(folder.special_tokens, "eos_token");
  for (const auto& shown : probe(*template_)) text += shown.value_or("");
  for (const std::string_view mark : marks_in(text)) {
    const auto id = tokenizer_.token_id(mark);
    if (id && tokenizer_.encode(mark) != std::vector<std::int32_t>{*id}) spelt_out_ = mark;
  }
}

Sample Chat::encode(std::span<const Message> messages) const {
  if (!template_)
    throw error(
        "the chat layout of this backbone is unknown (it has no chat template); set the task's 'chat' to chatml or "
        "llama3, or give input_ids, which scripts/pretokenize.py makes");
  if (spelt_out_.empty()) return encode_spans(lay_out(*template_, messages), tokenizer_);
  const std::string text = template_->render(messages, false);
  const bool begins_with_bos = !bos_.empty() && text.starts_with(bos_);
  for (const auto& [name, layout] : kChatLayouts) {
    const std::string plain = template_of(layout, {}).render(messages, false);
    if (text == (begins_with_bos ? bos_ : "") + plain)
      return encode_by_layout(messages, layout, begins_with_bos, tokenizer_);
  }
  throw error(
      "the tokenizer takes '{}' for text, so that what the chat template writes is not what its model reads; set the "
      "task's 'chat' to chatml or llama3 if that is the layout, or give input_ids, which scripts/pretokenize.py makes",
      spelt_out_);
}

}  // namespace braid::workload
