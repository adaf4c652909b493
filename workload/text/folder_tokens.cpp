#include "workload/text/folder_tokens.h"

#include <algorithm>
#include <array>
#include <map>

#include "base/utf8.h"

namespace braid::workload {
namespace {

constexpr std::array<std::string_view, 7> kNames = {"bos_token", "eos_token", "unk_token", "sep_token",
                                                    "pad_token", "cls_token", "mask_token"};

using NumberedTokens = std::vector<std::pair<std::int32_t, AddedToken>>;

const std::string& content_of(const SpecialToken& token) {
  const auto* name = std::get_if<std::string>(&token);
  return name ? *name : std::get<AddedToken>(token).content;
}

/// What a special token that only has a name is known as.
using Known = std::map<std::string, AddedToken>;

SpecialToken as_known(const SpecialToken& token, const Known& known) {
  const auto found = known.find(content_of(token));
  return found == known.end() ? token : SpecialToken(found->second);
}

/// The tokens of tokenizer_config.json; of an older folder those of added_tokens.json and of tokenizer.json.
NumberedTokens numbered_tokens(const TokenizerConfig& config, const NumberedTokens& listed) {
  if (config.decoder) return *config.decoder;
  std::map<std::int32_t, AddedToken> tokens;
  for (const auto& [id, content] : config.added) {
    const auto is_it = [&, &name = content](const SpecialToken& token) { return content_of(token) == name; };
    const bool special =
        std::ranges::any_of(config.named, [&](const auto& each) { return each.second && is_it(*each.second); }) ||
        std::ranges::any_of(config.extra, is_it);
    tokens.insert_or_assign(id, AddedToken{.content = content, .normalized = !special, .special = special});
  }
  for (const auto& [id, token] : listed) tokens.insert_or_assign(id, token);
  return {tokens.begin(), tokens.end()};
}

/// The named special tokens, the model's own last.
std::vector<std::pair<std::string, SpecialToken>> named_tokens(const TokenizerConfig& config,
                                                               const TokenDefaults& defaults, const Known& known) {
  std::vector<std::pair<std::string, SpecialToken>> tokens;
  for (const std::string_view name : kNames) {
    const auto* given = config.find(name);
    const auto otherwise = std::ranges::find_if(defaults.named, [&](const auto& each) { return each.first == name; });
    if (given && *given) {
      tokens.emplace_back(name, as_known(**given, known));
    } else if (!given && otherwise != defaults.named.end()) {
      tokens.emplace_back(name, SpecialToken(otherwise->second));
    }
  }
  for (const auto& [name, token] : config.named) {
    if (token && std::find(kNames.begin(), kNames.end(), name) == kNames.end()) tokens.emplace_back(name, *token);
  }
  return tokens;
}

std::optional<std::int32_t> id_of(const AddedVocabulary& vocabulary,
                                  const std::vector<std::pair<std::string, SpecialToken>>& named,
                                  std::string_view name) {
  const auto found = std::ranges::find_if(named, [&](const auto& each) { return each.first == name; });
  return found == named.end() ? std::nullopt : vocabulary.id(content_of(found->second));
}

}  // namespace

void add_with_id(AddedVocabulary& vocabulary, const AddedToken& token, std::int32_t id,
                 const std::filesystem::path& folder) {
  const std::int32_t added = vocabulary.add(token);
  if (added >= 0 && added != id)
    throw error(
        "{}: the added token '{}' has the id {}, and by the order of the tokens it is {}; mend the tokenizer's "
        "files, or give input_ids",
        folder.string(), shortened(token.content, 80), id, added);
}

TokenizerFacts add_folder_tokens(AddedVocabulary& vocabulary, const TokenizerConfig& config,
                                 const NumberedTokens& listed, const TokenDefaults& defaults,
                                 const std::filesystem::path& folder) {
  const NumberedTokens numbered = numbered_tokens(config, listed);
  Known known;
  for (const auto& [id, token] : numbered) known.insert_or_assign(token.content, token);
  const auto named = named_tokens(config, defaults, known);
  const std::vector<SpecialToken>& extra = config.extra.empty() ? defaults.extra : config.extra;

  const auto is_named = [&](const std::string& content) {
    return std::ranges::any_of(named, [&](const auto& each) { return content_of(each.second) == content; });
  };
  // What the folder says of a token that is there already goes before what tokenizer.json says.
  for (const auto& [id, token] : numbered) {
    if (vocabulary.has(token)) continue;
    AddedToken added = token;
    added.special = added.special || is_named(added.content);
    add_with_id(vocabulary, added, id, folder);
  }
  std::vector<SpecialToken> special;
  for (const auto& [name, token] : named) special.push_back(token);
  special.insert(special.end(), extra.begin(), extra.end());
  for (const SpecialToken& token : special) {
    if (vocabulary.has_content(content_of(token))) continue;
    const auto* whole = std::get_if<AddedToken>(&token);
    AddedToken added = whole ? *whole : AddedToken::named(content_of(token));
    added.special = added.special || is_named(added.content);
    vocabulary.add(added);
  }
  if (defaults.names_again) {
    for (const SpecialToken& token : special) vocabulary.add(AddedToken::named(content_of(token)));
  }

  TokenizerFacts facts;
  facts.bos = id_of(vocabulary, named, "bos_token");
  facts.eos = id_of(vocabulary, named, "eos_token");
  facts.chat_template = config.chat_template;
  return facts;
}

}  // namespace braid::workload
