#include "workload/text/tokenizer_json.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "base/utf8.h"
#include "workload/text/text_steps.h"

namespace braid::workload {
namespace {

constexpr std::size_t kMostQuoted = 80;  // bytes of a token in a message
constexpr const char* kSpoilt = "give the file as the model came with it";

std::string quoted(const std::string& text) {
  return "'" + shortened(text, kMostQuoted) + "'";
}

const Node& map_at(const Node& node, std::string_view key) {
  const Node& found = node.at(key);
  if (!found.is_map()) throw found.error(fmt::format("'{}' is no object", key), kSpoilt);
  return found;
}

Bpe::Vocabulary read_vocabulary(const Node& node) {
  Bpe::Vocabulary vocabulary;
  std::unordered_map<std::int32_t, const std::string*> owners;
  vocabulary.reserve(node.fields.size());
  owners.reserve(node.fields.size());
  for (const auto& [token, value] : node.fields) {
    const std::int32_t id = read_token_id(value);
    const auto [owner, is_new] = owners.emplace(id, &token);
    if (!is_new)
      throw value.error(
          fmt::format("the tokens {} and {} have the same id {}", quoted(*owner->second), quoted(token), id), kSpoilt);
    vocabulary.emplace_back(token, id);
  }
  return vocabulary;
}

/// "left right", or a list of the two.
std::pair<std::string, std::string> read_merge(const Node& node) {
  if (node.is_sequence()) {
    if (node.items.size() != 2) throw node.error("a merge is not of two tokens", kSpoilt);
    return {node.items[0].as_string("merge"), node.items[1].as_string("merge")};
  }
  const std::string both = node.as_string("merge");
  const std::size_t space = both.find(' ');
  if (space == std::string::npos || both.find(' ', space + 1) != std::string::npos)
    throw node.error(fmt::format("the merge {} is not of two tokens", quoted(both)), kSpoilt);
  return {both.substr(0, space), both.substr(space + 1)};
}

Bpe::Merges read_merges(const Node& node, const Bpe::Vocabulary& vocabulary) {
  std::unordered_set<std::string_view> tokens;
  tokens.reserve(vocabulary.size());
  for (const auto& [token, id] : vocabulary) tokens.insert(token);
  Bpe::Merges merges;
  merges.reserve(node.sequence("merges").size());
  for (const Node& item : node.items) {
    auto [left, right] = read_merge(item);
    for (const std::string& needed : {left, right, left + right}) {
      if (!tokens.contains(needed))
        throw item.error(fmt::format("a merge needs {}, which is no token", quoted(needed)), kSpoilt);
    }
    merges.emplace_back(std::move(left), std::move(right));
  }
  return merges;
}

void check_model(const Node& model) {
  const std::string type = model.string_or("type", model.find("merges") ? "BPE" : "");
  if (type != "BPE") throw not_built_in(model, fmt::format("the model {}", type.empty() ? "without a type" : type));
  if (const Node* dropout = model.find("dropout"); dropout && !dropout->is_null() && dropout->as_number("dropout") != 0)
    throw not_built_in(*dropout, "a dropout of merges");
  refuse_other_keys(model, "the model",
             {"type", "dropout", "unk_token", "fuse_unk", "byte_fallback", "ignore_merges", "vocab", "merges"});
}

Bpe::Rules read_rules(const Node& model) {
  Bpe::Rules rules;
  if (const Node* unknown = model.find("unk_token"); unknown && !unknown->is_null())
    rules.unknown = unknown->as_string("unk_token");
  rules.fuse_unknown = model.bool_or("fuse_unk", false);
  rules.byte_fallback = model.bool_or("byte_fallback", false);
  rules.ignore_merges = model.bool_or("ignore_merges", false);
  return rules;
}

bool names_byte_level(const Node& node) {
  if (node.is_scalar()) return node.text == "ByteLevel";
  return std::ranges::any_of(node.items, names_byte_level) ||
         std::ranges::any_of(node.fields, [](const auto& field) { return names_byte_level(field.second); });
}

Node part(const Node& root, std::string_view key) {
  const Node* found = root.find(key);
  if (found && !found->is_null() && !found->is_map())
    throw found->error(fmt::format("'{}' is no object", key), kSpoilt);
  return found ? *found : Node{};
}

/// The ids of a special token of a template.
std::vector<std::int32_t> template_ids(const Node& post_processor, const Node& piece) {
  const std::string name = piece.string_at("id");
  const Node* found = map_at(post_processor, "special_tokens").find(name);
  if (!found) throw piece.error(fmt::format("the template names {}, which it does not list", quoted(name)), kSpoilt);
  std::vector<std::int32_t> ids;
  for (const Node& id : found->at("ids").sequence("ids")) ids.push_back(read_token_id(id));
  return ids;
}

Frame read_template(const Node& node) {
  refuse_other_keys(node, "a TemplateProcessing", {"type", "single", "pair", "special_tokens"});
  Frame frame;
  int texts = 0;
  for (const Node& piece : node.at("single").sequence("single")) {
    if (const Node* text = piece.find("Sequence")) {
      if (text->string_at("id") != "A") throw not_built_in(*text, "a template for one text that holds two");
      ++texts;
    } else {
      auto& ids = texts == 0 ? frame.before : frame.after;
      const auto more = template_ids(node, piece.at("SpecialToken"));
      ids.insert(ids.end(), more.begin(), more.end());
    }
  }
  if (texts != 1) throw not_built_in(node, fmt::format("a template that holds its text {} times", texts));
  return frame;
}

}  // namespace

std::int32_t read_token_id(const Node& node) {
  return static_cast<std::int32_t>(node.as_integer("id", 0, std::numeric_limits<std::int32_t>::max() - 1));
}

AddedToken read_added_token(const Node& node) {
  refuse_other_keys(node, "an added token",
             {"__type", "id", "content", "lstrip", "rstrip", "single_word", "normalized", "special"});
  AddedToken token;
  token.content = node.string_at("content");
  token.left_strip = node.bool_or("lstrip", false);
  token.right_strip = node.bool_or("rstrip", false);
  token.single_word = node.bool_or("single_word", false);
  token.special = node.bool_or("special", false);
  token.normalized = node.bool_or("normalized", !token.special);
  return token;
}

TokenizerJson read_tokenizer_json(const std::filesystem::path& file) {
  const Node root = read_json(file);
  if (!root.is_map()) throw root.error("not a tokenizer of Hugging Face's", kSpoilt);
  refuse_other_keys(root, "the file",
             {"version", "truncation", "padding", "added_tokens", "normalizer", "pre_tokenizer", "post_processor",
              "decoder", "model"});
  const Node& model = map_at(root, "model");
  check_model(model);

  TokenizerJson read;
  read.vocabulary = read_vocabulary(map_at(model, "vocab"));
  read.merges = read_merges(model.at("merges"), read.vocabulary);
  read.rules = read_rules(model);
  if (const Node* added = root.find("added_tokens"); added && !added->is_null()) {
    for (const Node& token : added->sequence("added_tokens"))
      read.added.emplace_back(read_token_id(token.at("id")), read_added_token(token));
  }
  read.normalizer = part(root, "normalizer");
  read.pre_tokenizer = part(root, "pre_tokenizer");
  read.post_processor = part(root, "post_processor");
  for (const char* key : {"normalizer", "pre_tokenizer", "post_processor", "decoder"})
    read.by_bytes = read.by_bytes || names_byte_level(part(root, key));
  return read;
}

Frame read_post_processor(const Node& node) {
  if (node.is_null()) return {};
  const std::string type = node.string_at("type");
  if (type == "ByteLevel") return {};  // which trims what a token is said to span
  if (type == "TemplateProcessing") return read_template(node);
  if (type != "Sequence") throw not_built_in(node, "the post-processor " + type);
  refuse_other_keys(node, "a Sequence", {"type", "processors"});
  Frame frame;
  for (const Node& each : node.at("processors").sequence("processors")) {
    const Frame next = read_post_processor(each);
    frame.before.insert(frame.before.begin(), next.before.begin(), next.before.end());
    frame.after.insert(frame.after.end(), next.after.begin(), next.after.end());
  }
  return frame;
}

}  // namespace braid::workload
