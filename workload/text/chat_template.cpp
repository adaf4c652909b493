#include "workload/text/chat_template.h"

#include <algorithm>

#include "base/file.h"
#include "base/node.h"

namespace braid::workload {
namespace {

using jinja::Fields;
using jinja::Value;

Node read_settings(const std::filesystem::path& file) {
  Node settings;
  settings.kind = Node::Kind::map;
  if (!std::filesystem::exists(file)) return settings;
  settings = read_json(file, RepeatedKeys::last_wins);
  if (!settings.is_map()) throw settings.error("not a JSON object", "give the file as the model came with it");
  return settings;
}

void take_file(FolderChat& chat, const std::filesystem::path& file) {
  chat.text = read_file(file);
  chat.source = {.file = file.string()};
}

void take_text(FolderChat& chat, const Node& text) {
  chat.text = text.as_string("chat_template");
  chat.source = {.file = *text.file, .line = text.line, .one_line = true};
}

/// The one of several that transformers takes for conversations without tools.
void take_default(FolderChat& chat, const Node& list) {
  const Node* found = nullptr;
  for (const Node& named : list.items) {
    if (named.string_at("name") == "default") found = &named;
  }
  if (!found && !list.items.empty())
    throw list.error("of several chat templates none is named default", "name the one for conversations default");
  if (found) take_text(chat, found->at("template"));
}

void read_template(FolderChat& chat, const std::filesystem::path& folder, const Node& settings) {
  const std::filesystem::path own = folder / "chat_template.jinja", others = folder / "chat_templates";
  if (std::filesystem::exists(own)) return take_file(chat, own);
  if (std::filesystem::is_directory(others)) {
    if (std::filesystem::exists(others / "default.jinja")) return take_file(chat, others / "default.jinja");
    const auto files = std::filesystem::directory_iterator(others);
    if (std::any_of(begin(files), end(files), [](const auto& file) { return file.path().extension() == ".jinja"; }))
      throw error("{}: of several chat templates none is the default; give chat_template.jinja beside the folder",
                  others.string());
  }
  const Node* found = settings.find("chat_template");
  if (!found || found->is_null()) return;
  if (found->is_sequence()) return take_default(chat, *found);
  take_text(chat, *found);
}

/// A token is written as its name, or as an object with its name under "content".
const Node* name_of_token(const Node& token) {
  const Node* name = token.is_map() ? token.find("content") : &token;
  return name && name->is_scalar() && name->quoted ? name : nullptr;
}

/// Which names are given a token, or are said to have none.
class SpecialTokens {
 public:
  explicit SpecialTokens(Fields& fields) : fields_(fields) {}

  void take(const Node& settings, bool all) {
    for (const auto& [key, token] : settings.fields) {
      const Node* name = name_of_token(token);
      if (!name && !token.is_null()) continue;
      if (!all && !key.ends_with("_token")) continue;
      std::erase_if(fields_, [&](const auto& field) { return field.first == key; });
      told_.push_back(key);
      if (name) fields_.emplace_back(key, Value::text(name->text));
    }
  }

  /// Whether no file says anything of the name.
  bool lacks(std::string_view key) const { return std::find(told_.begin(), told_.end(), key) == told_.end(); }

 private:
  Fields& fields_;
  std::vector<std::string> told_;
};

/// Names that tokenizers of many models have for BOS and EOS; the id tells whether this one has.
constexpr std::string_view kUsualNames[] = {"<s>",        "</s>",  "<|endoftext|>",   "<|begin_of_text|>",
                                            "<bos>",      "<eos>", "<|end_of_text|>", "<|eot_id|>",
                                            "<|im_end|>", "[BOS]", "<|startoftext|>", "[EOS]"};

/// That the template does not write a token of which no file tells the name.
void refuse_unnamed(const FolderChat& chat, std::string_view key) {
  if (chat.text.find(key) == std::string::npos) return;
  throw chat.source.error(
      1, fmt::format("the chat template writes {}, whose name tokenizer_config.json does not tell", key));
}

/// Tokens that a class of tokenizers may take for granted where the files are silent.
constexpr std::string_view kOtherTokens[] = {"unk_token", "pad_token", "sep_token", "cls_token", "mask_token"};

void add_from_tokenizer(FolderChat& chat, const SpecialTokens& files, const Tokenizer& tokenizer,
                        const std::string& key, std::optional<std::int32_t> id) {
  if (!id || !files.lacks(key)) return;
  for (const std::string_view name : kUsualNames) {
    if (tokenizer.token_id(name) != id) continue;
    chat.special_tokens.emplace_back(key, Value::text(std::string(name)));
    return;
  }
  refuse_unnamed(chat, key);
}

}  // namespace

ChatTemplate::ChatTemplate(std::string_view text, jinja::Source source, Fields special_tokens)
    : template_(text, std::move(source)), special_tokens_(std::move(special_tokens)) {}

std::string ChatTemplate::render(std::span<const Message> messages, bool prompt) const {
  jinja::Items turns;
  for (const Message& message : messages)
    turns.push_back(Value::mapping({{"role", Value::text(message.role)}, {"content", Value::text(message.content)}}));
  Fields variables = special_tokens_;
  variables.emplace_back("messages", Value::list(std::move(turns)));
  variables.emplace_back("tools", Value());
  variables.emplace_back("documents", Value());
  variables.emplace_back("add_generation_prompt", Value::boolean(prompt));
  try {
    return template_.render(variables);
  } catch (const jinja::Raised& raised) {
    throw error("the chat template refuses the messages ({}); follow its order of roles", raised.what());
  } catch (const Error& failure) {
    throw error(
        "the chat template cannot lay out the messages ({}); follow its order of roles, or give input_ids, which "
        "scripts/pretokenize.py makes",
        failure.what());
  }
}

FolderChat read_folder_chat(const std::filesystem::path& folder, const Tokenizer& tokenizer) {
  FolderChat chat;
  SpecialTokens tokens(chat.special_tokens);
  if (!folder.empty()) {
    const Node settings = read_settings(folder / "tokenizer_config.json");
    read_template(chat, folder, settings);
    tokens.take(settings, false);
    if (const Node* extra = settings.find("extra_special_tokens"); extra && extra->is_map()) tokens.take(*extra, true);
    const Node* decoder = settings.find("added_tokens_decoder");
    if (!decoder || decoder->is_null()) tokens.take(read_settings(folder / "special_tokens_map.json"), true);
  }
  if (chat.text.empty()) {
    chat.text = tokenizer.facts().chat_template;
    chat.source = {.file = folder.string()};
  }
  add_from_tokenizer(chat, tokens, tokenizer, "bos_token", tokenizer.facts().bos);
  add_from_tokenizer(chat, tokens, tokenizer, "eos_token", tokenizer.facts().eos);
  for (const std::string_view key : kOtherTokens) {
    if (tokens.lacks(key)) refuse_unnamed(chat, key);
  }
  return chat;
}

}  // namespace braid::workload
