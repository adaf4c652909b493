#include "workload/text/sentencepiece_tokenizer.h"

#include <map>
#include <set>

#include <sentencepiece_processor.h>

#include "base/file.h"
#include "workload/text/bpe_tokenizer.h"
#include "workload/text/huggingface_tokenizer.h"
#include "workload/text/sentencepiece_model.h"

namespace braid::workload {
namespace {

using sentencepiece::SentencePieceProcessor;
using PieceIds = std::map<std::string, std::int32_t, std::less<>>;
using PieceType = SentencePieceModel::PieceType;

constexpr std::string_view kMark = "\xE2\x96\x81";  // which stands for a blank

class SentencePieceTokenizer : public Tokenizer {
 public:
  /// `bare`, which puts no blank before a text, encodes all but the text's beginning; where there is none, `model`
  /// encodes everything.
  SentencePieceTokenizer(TokenizerFacts facts, std::unique_ptr<SentencePieceProcessor> model,
                         std::unique_ptr<SentencePieceProcessor> bare, AddedVocabulary added)
      : Tokenizer(std::move(facts)),
        model_(std::move(model)),
        bare_(std::move(bare)),
        added_(std::move(added)),
        finder_(added_.finder(false, [](const std::string& content) { return content; })) {}

  std::vector<std::int32_t> encode(std::string_view text) const override {
    std::vector<std::int32_t> ids;
    for (const auto& [range, id] : finder_.split(text)) {
      if (id) {
        ids.push_back(*id);
        continue;
      }
      const std::string_view plain = text.substr(range.begin, range.end - range.begin);
      std::vector<int> more;
      const auto status = model_for(plain, range.begin).Encode(plain, &more);
      if (!status.ok()) throw error("the text cannot be tokenized ({}); mend it", status.ToString());
      ids.insert(ids.end(), more.begin(), more.end());
    }
    return ids;
  }

  std::optional<std::int32_t> token_id(std::string_view token) const override { return added_.id(token); }

 private:
  const SentencePieceProcessor& model_for(std::string_view plain, std::size_t at) const {
    const bool begins_with_blank = plain.starts_with(' ') || plain.starts_with(kMark);
    return bare_ && (at > 0 || begins_with_blank) ? *bare_ : *model_;
  }

  std::unique_ptr<SentencePieceProcessor> model_, bare_;
  AddedVocabulary added_;
  TokenFinder finder_;
};

std::unique_ptr<SentencePieceProcessor> load(const std::string& bytes, const std::filesystem::path& file) {
  auto model = std::make_unique<SentencePieceProcessor>();
  if (const auto status = model->LoadFromSerializedProto(bytes); !status.ok())
    throw error("{}: not a SentencePiece model; give the backbone's own tokenizer.model", file.string());
  return model;
}

/// Lines of "BASE64 RANK".
bool is_tiktoken(std::string_view bytes) {
  const std::string_view line = bytes.substr(0, std::min(bytes.find('\n'), bytes.size()));
  const std::size_t space = line.find(' ');
  if (space == 0 || space == std::string_view::npos || space + 1 == line.size()) return false;
  return line.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=") == space &&
         line.find_first_not_of("0123456789\r", space + 1) == std::string_view::npos;
}

/// The ids of pieces by name; what the folder calls a piece by its id goes before what the model calls it.
PieceIds piece_ids(const SentencePieceModel& model, const TokenizerConfig& config) {
  std::map<std::int32_t, std::string> renamed;
  if (config.decoder) {
    for (const auto& [id, token] : *config.decoder) renamed.emplace(id, token.content);
  }
  std::set<std::string> kept;
  for (std::size_t i = 0; i < model.pieces.size(); ++i) {
    if (!renamed.contains(static_cast<std::int32_t>(i))) kept.insert(model.pieces[i].text);
  }
  PieceIds ids;
  for (std::size_t i = 0; i < model.pieces.size(); ++i) {
    const auto id = static_cast<std::int32_t>(i);
    const auto name = renamed.find(id);
    const bool is_renamed = name != renamed.end() && !kept.contains(name->second);
    ids.insert_or_assign(is_renamed ? name->second : model.pieces[i].text, id);
  }
  return ids;
}

/// The control pieces are special tokens, and a text's user-defined pieces are cut out like these.
std::vector<SpecialToken> special_pieces(const SentencePieceModel& model, bool with_user_defined) {
  std::vector<SpecialToken> tokens;
  for (const SentencePieceModel::Piece& piece : model.pieces) {
    const bool control = piece.type == PieceType::control;
    if (control || (with_user_defined && piece.type == PieceType::user_defined))
      tokens.emplace_back(AddedToken{.content = piece.text, .normalized = false, .special = control});
  }
  return tokens;
}

std::unique_ptr<Tokenizer> make_llama(const std::filesystem::path& folder, const TokenizerConfig& config,
                                      const SentencePieceModel& model) {
  if (!model.merges_pairs)
    throw error(
        "{}: a SentencePiece model that merges no pairs, under the class LlamaTokenizer, is not built in; give "
        "input_ids, which scripts/pretokenize.py makes",
        (folder / "tokenizer.model").string());
  Bpe::Vocabulary vocabulary;
  for (const SentencePieceModel::Piece& piece : model.pieces)
    vocabulary.emplace_back(piece.text, static_cast<std::int32_t>(vocabulary.size()));
  TokenizerSteps steps = steps_of(TokenizerClass::llama, config);
  steps.tokens.extra = special_pieces(model, true);
  auto bpe = std::make_unique<const Bpe>(vocabulary, merges_of(vocabulary), steps.rules);
  AddedVocabulary added([&asked = *bpe](std::string_view token) { return asked.id(token); }, bpe->size());
  TokenizerFacts facts = add_folder_tokens(added, config, {}, steps.tokens, folder);
  facts.vocabulary = bpe->end();
  facts.prepends_bos = config.add_bos && facts.bos.has_value();
  return std::make_unique<BpeTokenizer>(std::move(facts), std::move(bpe), std::move(added), std::move(steps.normalizer),
                                        std::move(steps.cut));
}

std::unique_ptr<Tokenizer> make_as_it_stands(const std::filesystem::path& folder, const TokenizerConfig& config,
                                             const SentencePieceModel& model, const std::string& bytes) {
  const std::filesystem::path file = folder / "tokenizer.model";
  auto processor = load(bytes, file);
  TokenDefaults defaults;
  const auto name = [&](const char* token, int id) {
    if (id >= 0) defaults.named.emplace_back(token, processor->IdToPiece(id));
  };
  name("bos_token", processor->bos_id());
  name("eos_token", processor->eos_id());
  name("unk_token", processor->unk_id());
  defaults.extra = special_pieces(model, false);

  AddedVocabulary added(
      [ids = piece_ids(model, config)](std::string_view token) -> std::optional<std::int32_t> {
        const auto found = ids.find(token);
        if (found == ids.end()) return std::nullopt;
        return found->second;
      },
      processor->GetPieceSize());
  TokenizerConfig raw = config;
  if (raw.decoder) {
    for (auto& [id, token] : *raw.decoder) token.normalized = false;
  }
  TokenizerFacts facts = add_folder_tokens(added, raw, {}, defaults, folder);
  facts.vocabulary = processor->GetPieceSize();
  facts.prepends_bos = config.add_bos && facts.bos.has_value();
  const bool only_first = model.add_dummy_prefix && !config.legacy.value_or(true);
  return std::make_unique<SentencePieceTokenizer>(std::move(facts), std::move(processor),
                                                  only_first ? load(without_dummy_prefix(bytes), file) : nullptr,
                                                  std::move(added));
}

}  // namespace

std::unique_ptr<Tokenizer> make_sentencepiece_tokenizer(const std::filesystem::path& folder,
                                                        const TokenizerConfig& config) {
  const std::filesystem::path file = folder / "tokenizer.model";
  const std::string bytes = read_file(file);
  if (is_tiktoken(bytes))
    throw error(
        "{}: a tiktoken file, which is not built in; put the model's tokenizer.json beside it, or give a "
        "dataset of input_ids, which scripts/pretokenize.py makes",
        file.string());
  load(bytes, file);
  const SentencePieceModel model = parse_sentencepiece_model(bytes);
  switch (tokenizer_class_of(config, false, folder)) {
    case TokenizerClass::llama:
      return make_llama(folder, config, model);
    case TokenizerClass::as_it_stands:
      return make_as_it_stands(folder, config, model, bytes);
    case TokenizerClass::qwen2:
    case TokenizerClass::gpt2:
      break;
  }
  throw error(
      "{}: a tokenizer of this class has a tokenizer.json, and no tokenizer.model; put it there, or give "
      "input_ids, which scripts/pretokenize.py makes",
      file.string());
}

}  // namespace braid::workload
