#include "workload/text/tokenizer_config.h"

#include <algorithm>
#include <array>

#include <fmt/ranges.h>

#include "base/file.h"
#include "base/notice.h"
#include "base/utf8.h"
#include "workload/text/text_steps.h"
#include "workload/text/tokenizer_json.h"

namespace braid::workload {
namespace {

/// Keys that change no ids.
constexpr std::array<std::string_view, 34> kHarmlessKeys = {"backend",
                                                            "chat_control_tokens",
                                                            "chat_template",
                                                            "clean_up_tokenization_spaces",
                                                            "device_map",
                                                            "errors",
                                                            "is_local",
                                                            "local_files_only",
                                                            "max_len",
                                                            "max_length",
                                                            "merges_file",
                                                            "model_input_names",
                                                            "model_max_length",
                                                            "name_or_path",
                                                            "pad_to_multiple_of",
                                                            "pad_token_type_id",
                                                            "padding",
                                                            "padding_side",
                                                            "processor_class",
                                                            "response_schema",
                                                            "response_template",
                                                            "return_token_type_ids",
                                                            "spaces_between_special_tokens",
                                                            "special_tokens_map_file",
                                                            "stride",
                                                            "tokenizer_file",
                                                            "truncation",
                                                            "truncation_side",
                                                            "truncation_strategy",
                                                            "trust_remote_code",
                                                            "use_default_system_prompt",
                                                            "use_fast",
                                                            "verbose",
                                                            "vocab_file"};

/// Keys that are read below.
constexpr std::array<std::string_view, 10> kReadKeys = {"tokenizer_class",
                                                        "legacy",
                                                        "add_prefix_space",
                                                        "add_bos_token",
                                                        "add_eos_token",
                                                        "added_tokens_decoder",
                                                        "auto_map",
                                                        "additional_special_tokens",
                                                        "extra_special_tokens",
                                                        "model_specific_special_tokens"};

/// Keys that change ids, where they are set.
constexpr std::array<std::string_view, 12> kKeysThatChangeIds = {"split_special_tokens",
                                                                 "fast_tokenizer_files",
                                                                 "fix_mistral_regex",
                                                                 "init_inputs",
                                                                 "sp_model_kwargs",
                                                                 "gguf_file",
                                                                 "post_processor",
                                                                 "tokenizer_object",
                                                                 "vocab",
                                                                 "merges",
                                                                 "from_slow",
                                                                 "do_lower_case"};

template <std::size_t count>
bool is_listed(std::string_view word, const std::array<std::string_view, count>& words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

bool is_unset(const Node& node) {
  return node.is_null() || (node.is_scalar() && (node.text == "false" || node.text.empty())) ||
         (node.is_sequence() && node.items.empty()) || (node.is_map() && node.fields.empty());
}

constexpr std::array<std::string_view, 4> kEveryModelsTokens = {"bos_token", "eos_token", "unk_token", "pad_token"};

/// Whether a key names a special token: "bos_token", or one of the model's own, "image_token".
bool names_token(const std::string& key, const Node& value) {
  return key.ends_with("_token") && !is_listed(key, kReadKeys) &&
         (value.is_null() || value.is_map() || (value.is_scalar() && value.quoted));
}

Node read_object_if_there(const std::filesystem::path& path) {
  Node root;
  root.kind = Node::Kind::map;
  if (!std::filesystem::exists(path)) return root;
  root = read_json(path, RepeatedKeys::last_wins);
  if (!root.is_map()) throw root.error("not a JSON object", "give the file as the model came with it");
  return root;
}

/// `is_special` where what lists the token says that it is one.
std::optional<SpecialToken> read_special(const Node& node, std::string_view key, bool is_special) {
  if (node.is_null()) return std::nullopt;
  if (!node.is_map()) return node.as_string(key);
  AddedToken token = read_added_token(node);
  token.special = token.special || is_special;
  if (!node.find("normalized")) token.normalized = !token.special;
  return token;
}

void set_named(TokenizerConfig& config, const std::string& key, std::optional<SpecialToken> token) {
  const auto found = std::ranges::find_if(config.named, [&](const auto& each) { return each.first == key; });
  if (found == config.named.end()) {
    config.named.emplace_back(key, std::move(token));
  } else {
    found->second = std::move(token);
  }
}

/// A list of tokens, or tokens by a name each.
void read_extra(TokenizerConfig& config, const Node& node, std::string_view key, bool are_special) {
  if (node.is_map()) {
    for (const auto& [name, token] : node.fields) set_named(config, name, read_special(token, name, true));
    return;
  }
  for (const Node& token : node.sequence(key)) {
    if (auto special = read_special(token, key, are_special)) config.extra.push_back(std::move(*special));
  }
}

std::vector<std::pair<std::int32_t, AddedToken>> read_decoder(const Node& node) {
  if (!node.is_map()) throw node.error("added_tokens_decoder is no object", "give {\"ID\": {\"content\": ...}}");
  std::vector<std::pair<std::int32_t, AddedToken>> tokens;
  for (const auto& [id, token] : node.fields) {
    Node number = token;
    number.kind = Node::Kind::scalar;
    number.quoted = false;
    number.text = id;
    tokens.emplace_back(read_token_id(number), read_added_token(token));
  }
  std::ranges::sort(tokens, {}, [](const auto& each) { return each.first; });
  return tokens;
}

void check_config_keys(const Node& root) {
  std::vector<std::string> unknown;
  for (const auto& [key, value] : root.fields) {
    if (is_listed(key, kEveryModelsTokens) && !names_token(key, value))
      throw value.error(fmt::format("{} is no name of a token", key), "give it as a string, or null");
    if (is_listed(key, kHarmlessKeys) || is_listed(key, kReadKeys) || names_token(key, value)) continue;
    if (!is_listed(key, kKeysThatChangeIds)) {
      unknown.push_back(key);
    } else if (!is_unset(value)) {
      throw not_built_in(value, fmt::format("'{}'", key));
    }
  }
  if (!unknown.empty()) notice(fmt::format("{}: keys that are not read: {}", *root.file, fmt::join(unknown, ", ")));
}

/// What older versions wrote beside tokenizer_config.json.
void read_older_files(TokenizerConfig& config, const std::filesystem::path& folder) {
  for (const auto& [key, value] : read_object_if_there(folder / "special_tokens_map.json").fields) {
    if (key == "additional_special_tokens" || key == "extra_special_tokens") {
      if (value.is_null()) continue;
      config.extra.clear();
      read_extra(config, value, key, true);
    } else {
      set_named(config, key, read_special(value, key, true));
    }
  }
  for (const auto& [content, id] : read_object_if_there(folder / "added_tokens.json").fields)
    config.added.emplace_back(read_token_id(id), content);
  std::ranges::sort(config.added);
}

/// One template, or a list of named ones of which the default counts; newer folders keep it in a file of its own.
std::string read_chat_template(const std::filesystem::path& folder, const Node& root) {
  if (const auto file = folder / "chat_template.jinja"; std::filesystem::exists(file)) return read_file(file);
  const Node* found = root.find("chat_template");
  if (!found || found->is_null()) return "";
  if (!found->is_sequence()) return found->as_string("chat_template");
  for (const Node& named : found->items) {
    if (named.string_or("name", "") == "default") return named.string_at("template");
  }
  return "";
}

std::optional<bool> read_choice(const Node& root, std::string_view key) {
  const Node* found = root.find(key);
  if (!found || found->is_null()) return std::nullopt;
  return found->as_bool(key);
}

}  // namespace

const std::optional<SpecialToken>* TokenizerConfig::find(std::string_view name) const {
  const auto found = std::ranges::find_if(named, [&](const auto& each) { return each.first == name; });
  return found == named.end() ? nullptr : &found->second;
}

TokenizerConfig read_tokenizer_config(const std::filesystem::path& folder) {
  const Node root = read_object_if_there(folder / "tokenizer_config.json");
  const Node model = read_object_if_there(folder / "config.json");
  check_config_keys(root);
  TokenizerConfig config;
  config.tokenizer_class = root.string_or("tokenizer_class", model.string_or("tokenizer_class", ""));
  if (config.tokenizer_class.ends_with("Fast")) config.tokenizer_class.resize(config.tokenizer_class.size() - 4);
  config.model_type = model.string_or("model_type", "");
  config.legacy = read_choice(root, "legacy");
  config.add_prefix_space = read_choice(root, "add_prefix_space");
  config.add_bos = root.bool_or("add_bos_token", false);
  config.add_eos = root.bool_or("add_eos_token", false);
  if (const Node* map = root.find("auto_map")) {
    const Node* code = map->is_map() ? map->find("AutoTokenizer") : map;
    config.has_code = code && !is_unset(*code);
  }
  for (const auto& [key, value] : root.fields) {
    if (names_token(key, value)) set_named(config, key, read_special(value, key, true));
  }
  const Node* extra = root.find("extra_special_tokens");
  if (!extra || is_unset(*extra)) extra = root.find("additional_special_tokens");
  if (extra && !is_unset(*extra)) read_extra(config, *extra, "extra_special_tokens", false);
  if (const Node* own = root.find("model_specific_special_tokens"); own && !is_unset(*own))
    read_extra(config, *own, "model_specific_special_tokens", false);
  if (const Node* decoder = root.find("added_tokens_decoder"); decoder && !decoder->is_null()) {
    config.decoder = read_decoder(*decoder);
  } else {
    read_older_files(config, folder);
  }
  config.chat_template = read_chat_template(folder, root);
  return config;
}

}  // namespace braid::workload
