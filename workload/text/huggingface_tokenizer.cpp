#include "workload/text/huggingface_tokenizer.h"

#include "base/error.h"
#include "workload/text/bpe_tokenizer.h"
#include "workload/text/sentencepiece_tokenizer.h"
#include "workload/text/tokenizer_json.h"

namespace braid::workload {
namespace {

constexpr const char* kQwen2Words =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kGpt2End = "<|endoftext|>";

/// The class that transformers has for a type of model; empty where it has none, and where it takes any file as it is.
std::string_view class_of_model(std::string_view model_type) {
  return model_type == "qwen2" || model_type == "qwen3" ? "Qwen2Tokenizer" : "";
}

std::string class_name(const TokenizerConfig& config, bool by_bytes) {
  constexpr const char* kAny = "TokenizersBackend";
  const std::string& named = config.tokenizer_class;
  if (config.model_type == "mistral") return kAny;
  // Folders of Qwen2 name wrong classes often enough that transformers does not ask them.
  if (config.model_type == "qwen2") return "Qwen2Tokenizer";
  if (named == "LlamaTokenizer" && by_bytes) return kAny;
  if (!named.empty()) return named;
  const std::string_view of_model = class_of_model(config.model_type);
  return of_model.empty() ? kAny : std::string(of_model);
}

/// That no more comes around a text than BOS and EOS, and whether BOS does.
bool puts_bos(const Frame& frame, const TokenizerFacts& facts, const Node& post_processor) {
  const auto is_only = [](const std::vector<std::int32_t>& ids, std::optional<std::int32_t> id) {
    return ids.empty() || (id && ids.size() == 1 && ids.front() == *id);
  };
  if (!is_only(frame.before, facts.bos))
    throw not_built_in(post_processor, "a post-processor that begins a text with something other than the bos_token");
  if (!is_only(frame.after, facts.eos))
    throw not_built_in(post_processor, "a post-processor that ends a text with something other than the eos_token");
  return !frame.before.empty();
}

std::unique_ptr<Tokenizer> make_from_json(const std::filesystem::path& folder, const TokenizerConfig& config) {
  TokenizerJson json = read_tokenizer_json(folder / "tokenizer.json");
  const TokenizerClass kind = tokenizer_class_of(config, json.by_bytes, folder);
  TokenizerSteps steps;
  if (kind == TokenizerClass::as_it_stands) {
    steps = {json.rules, read_normalizer(json.normalizer), read_pre_tokenizer(json.pre_tokenizer), {}};
  } else {
    steps = steps_of(kind, config);
  }
  std::unique_ptr<const Bpe> model;
  try {
    model = std::make_unique<const Bpe>(json.vocabulary, json.merges, steps.rules);
  } catch (const Error& failure) {
    throw error("{}: {}; give the file as the model came with it", (folder / "tokenizer.json").string(),
                failure.what());
  }
  AddedVocabulary added([&asked = *model](std::string_view token) { return asked.id(token); }, model->size());
  if (kind == TokenizerClass::as_it_stands) {
    for (const auto& [id, token] : json.added) add_with_id(added, token, id, folder / "tokenizer.json");
  }
  TokenizerFacts facts = add_folder_tokens(added, config, json.added, steps.tokens, folder);
  facts.vocabulary = model->end();
  facts.prepends_bos = puts_bos(read_post_processor(json.post_processor), facts, json.post_processor);
  return std::make_unique<BpeTokenizer>(std::move(facts), std::move(model), std::move(added),
                                        std::move(steps.normalizer), std::move(steps.cut));
}

}  // namespace

TokenizerClass tokenizer_class_of(const TokenizerConfig& config, bool by_bytes, const std::filesystem::path& folder) {
  const std::string name = class_name(config, by_bytes);
  if (config.has_code && config.model_type != "qwen2")
    throw error(
        "{}: the tokenizer runs code of its own (auto_map), which is not built in; give input_ids, which "
        "scripts/pretokenize.py makes",
        (folder / "tokenizer_config.json").string());
  if (name == "TokenizersBackend" || name == "PreTrainedTokenizer") return TokenizerClass::as_it_stands;
  if (name == "LlamaTokenizer") return TokenizerClass::llama;
  if (name == "Qwen2Tokenizer") return TokenizerClass::qwen2;
  if (name == "GPT2Tokenizer") return TokenizerClass::gpt2;
  throw error("{}: the tokenizer_class {} is not built in; give input_ids, which scripts/pretokenize.py makes",
              (folder / "tokenizer_config.json").string(), name);
}

TokenizerSteps steps_of(TokenizerClass tokenizer_class, const TokenizerConfig& config) {
  const std::string end(kGpt2End);
  switch (tokenizer_class) {
    case TokenizerClass::llama: {
      const PrefixSpace prefix = !config.add_prefix_space.value_or(true) ? PrefixSpace::never
                                 : config.legacy.value_or(false)         ? PrefixSpace::always
                                                                         : PrefixSpace::first;
      return {.rules = {.unknown = {}, .fuse_unknown = true, .byte_fallback = true},
              .normalizer = {},
              .cut = metaspace_cut(prefix),
              .tokens = {.named = {{"bos_token", "<s>"}, {"eos_token", "</s>"}, {"unk_token", "<unk>"}}, .extra = {}}};
    }
    case TokenizerClass::qwen2:
      return {
          .rules = {},
          .normalizer = nfc_normalizer(),
          .cut = pattern_cut(kQwen2Words, config.add_prefix_space.value_or(false)),
          .tokens = {
              .named = {{"eos_token", end}, {"unk_token", end}, {"pad_token", end}}, .extra = {}, .names_again = true}};
    case TokenizerClass::gpt2:
      return {.rules = {},
              .normalizer = {},
              .cut = byte_level_cut(config.add_prefix_space.value_or(false)),
              .tokens = {.named = {{"bos_token", end}, {"eos_token", end}, {"unk_token", end}}, .extra = {}}};
    case TokenizerClass::as_it_stands:
      break;
  }
  throw InternalError("a tokenizer taken as it stands has steps of its own");
}

std::unique_ptr<Tokenizer> make_huggingface_tokenizer(const std::filesystem::path& folder) {
  const bool has_json = std::filesystem::exists(folder / "tokenizer.json");
  if (!has_json && !std::filesystem::exists(folder / "tokenizer.model"))
    throw error(
        "{}: no tokenizer.json and no tokenizer.model; put the model's own there, or give a dataset of "
        "input_ids, which scripts/pretokenize.py makes",
        folder.string());
  const TokenizerConfig config = read_tokenizer_config(folder);
  return has_json ? make_from_json(folder, config) : make_sentencepiece_tokenizer(folder, config);
}

}  // namespace braid::workload
