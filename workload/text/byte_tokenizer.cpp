#include <algorithm>
#include <limits>

#include "base/node.h"
#include "workload/text/tokenizer.h"

namespace braid::workload {
namespace {

constexpr std::int64_t kFirstSpecial = 256;
constexpr std::string_view kChatMl =
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + "
    "'\\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}";

using Specials = std::vector<std::pair<std::string, std::int32_t>>;

class ByteTokenizer : public Tokenizer {
 public:
  ByteTokenizer(TokenizerFacts facts, Specials specials)
      : Tokenizer(std::move(facts)), specials_(std::move(specials)) {}

  std::vector<std::int32_t> encode(std::string_view text) const override {
    std::vector<std::int32_t> ids;
    ids.reserve(text.size());
    for (const char byte : text) ids.push_back(static_cast<unsigned char>(byte));
    return ids;
  }

  std::optional<std::int32_t> token_id(std::string_view token) const override {
    const auto found =
        std::find_if(specials_.begin(), specials_.end(), [&](const auto& special) { return special.first == token; });
    if (found == specials_.end()) return std::nullopt;
    return found->second;
  }

 private:
  Specials specials_;
};

std::int32_t special_id(const Node& node, const std::string& name) {
  return static_cast<std::int32_t>(node.as_integer(name, kFirstSpecial, std::numeric_limits<std::int32_t>::max() - 1));
}

}  // namespace

std::unique_ptr<Tokenizer> make_byte_tokenizer(const std::filesystem::path& file) {
  const Node root = read_json(file);
  if (const std::string type = root.string_at("type"); type != "byte") {
    throw root.at("type").error(fmt::format("unknown tokenizer type '{}'", type), "valid types: byte");
  }
  TokenizerFacts facts;
  facts.vocabulary = kFirstSpecial;
  Specials specials;
  for (const auto& [key, value] : root.fields) {
    if (key == "type" || key == "add_bos") continue;
    if (key != "bos" && key != "eos" && !key.starts_with('<')) {
      throw value.error(fmt::format("unknown key '{}'", key),
                        "valid keys: type, bos, eos, add_bos, and special tokens as \"<...>\"");
    }
    const std::int32_t id = special_id(value, key);
    facts.vocabulary = std::max<std::int64_t>(facts.vocabulary, id + 1);
    if (key == "bos") {
      facts.bos = id;
    } else if (key == "eos") {
      facts.eos = id;
    } else {
      specials.emplace_back(key, id);
    }
  }
  facts.prepends_bos = root.bool_or("add_bos", true) && facts.bos.has_value();
  facts.chat_template = kChatMl;
  return std::make_unique<ByteTokenizer>(std::move(facts), std::move(specials));
}

std::string byte_tokenizer_json() {
  return R"({"type": "byte", "bos": 256, "eos": 257, "add_bos": true, "<|im_start|>": 258, "<|im_end|>": 259})"
         "\n";
}

}  // namespace braid::workload
