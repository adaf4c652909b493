#include <limits>
#include <map>

#include <sentencepiece_processor.h>

#include "base/file.h"
#include "base/node.h"
#include "workload/tokenizer.h"

namespace braid::workload {
namespace {

using AddedTokens = std::map<std::string, std::int32_t, std::less<>>;

class SentencePieceTokenizer : public Tokenizer {
 public:
  SentencePieceTokenizer(TokenizerFacts facts, std::unique_ptr<sentencepiece::SentencePieceProcessor> model,
                         AddedTokens added)
      : Tokenizer(std::move(facts)), model_(std::move(model)), added_(std::move(added)) {}

  std::vector<std::int32_t> encode(std::string_view text) const override {
    std::vector<int> ids;
    const auto status = model_->Encode(text, &ids);
    if (!status.ok()) throw error("the text cannot be tokenized ({}); mend it", status.ToString());
    return {ids.begin(), ids.end()};
  }

  std::optional<std::int32_t> token_id(std::string_view token) const override;

 private:
  std::unique_ptr<sentencepiece::SentencePieceProcessor> model_;
  AddedTokens added_;
};

std::optional<std::int32_t> find_token(const sentencepiece::SentencePieceProcessor& model, const AddedTokens& added,
                                       std::string_view token) {
  if (const auto found = added.find(token); found != added.end()) return found->second;
  // An unknown piece maps to the id of <unk>.
  const int id = model.PieceToId(token);
  if (id < 0 || id >= model.GetPieceSize() || model.IdToPiece(id) != token) return std::nullopt;
  return id;
}

std::optional<std::int32_t> SentencePieceTokenizer::token_id(std::string_view token) const {
  return find_token(*model_, added_, token);
}

Node read_if_there(const std::filesystem::path& path) {
  return std::filesystem::exists(path) ? read_json(path) : Node{};
}

std::int32_t id_of(const Node& node, std::int64_t id) {
  if (id < 0 || id >= std::numeric_limits<std::int32_t>::max()) {
    throw node.error(fmt::format("token id {} is out of range", id), "mend the tokenizer's files");
  }
  return static_cast<std::int32_t>(id);
}

/// Tokens put beside the model: added_tokens.json {name: id}, and tokenizer_config.json's {"id": {"content": name}}.
AddedTokens read_added_tokens(const std::filesystem::path& folder, const Node& config) {
  AddedTokens added;
  for (const auto& [name, id] : read_if_there(folder / "added_tokens.json").fields) {
    added[name] = id_of(id, id.as_integer(name));
  }
  if (const Node* decoder = config.find("added_tokens_decoder")) {
    for (const auto& [id, token] : decoder->fields) {
      Node number = token;
      number.kind = Node::Kind::scalar;
      number.text = id;
      added[token.string_at("content")] = id_of(token, number.as_integer("added_tokens_decoder"));
    }
  }
  return added;
}

/// A token is written as its name, or as a map with its name under "content".
std::string token_name(const Node& config, std::string_view key) {
  const Node* token = config.find(key);
  if (!token || token->is_null()) return "";
  return token->is_map() ? token->string_at("content") : token->as_string(key);
}

/// One template, or a list of named ones of which the default counts; newer folders keep it in a file of its own.
std::string read_chat_template(const std::filesystem::path& folder, const Node& config) {
  if (const auto file = folder / "chat_template.jinja"; std::filesystem::exists(file)) return read_file(file);
  const Node* found = config.find("chat_template");
  if (!found || found->is_null()) return "";
  if (!found->is_sequence()) return found->as_string("chat_template");
  for (const Node& named : found->items) {
    if (named.string_or("name", "") == "default") return named.string_at("template");
  }
  return "";
}

}  // namespace

std::unique_ptr<Tokenizer> make_sentencepiece_tokenizer(const std::filesystem::path& folder) {
  const std::filesystem::path file = folder / "tokenizer.model";
  auto model = std::make_unique<sentencepiece::SentencePieceProcessor>();
  if (const auto status = model->LoadFromSerializedProto(read_file(file)); !status.ok()) {
    throw error("{}: not a SentencePiece model; give the backbone's own tokenizer.model", file.string());
  }
  const Node config = read_if_there(folder / "tokenizer_config.json");
  AddedTokens added = read_added_tokens(folder, config);

  TokenizerFacts facts;
  facts.bos = find_token(*model, added, token_name(config, "bos_token"));
  facts.eos = find_token(*model, added, token_name(config, "eos_token"));
  if (!facts.bos && model->bos_id() >= 0) facts.bos = model->bos_id();
  if (!facts.eos && model->eos_id() >= 0) facts.eos = model->eos_id();
  facts.prepends_bos = config.bool_or("add_bos_token", true) && facts.bos.has_value();
  facts.vocabulary = model->GetPieceSize();
  facts.chat_template = read_chat_template(folder, config);
  return std::make_unique<SentencePieceTokenizer>(std::move(facts), std::move(model), std::move(added));
}

}  // namespace braid::workload
