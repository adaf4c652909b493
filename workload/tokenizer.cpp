#include "workload/tokenizer.h"

#include <algorithm>

#include "base/error.h"

namespace braid::workload {
namespace {

class MissingTokenizer : public Tokenizer {
 public:
  MissingTokenizer(std::string why, std::int64_t vocabulary)
      : Tokenizer({.bos = {}, .eos = {}, .vocabulary = vocabulary, .chat_template = {}}), why_(std::move(why)) {}

  std::vector<std::int32_t> encode(std::string_view) const override {
    throw error("{}; give a dataset of input_ids, which scripts/pretokenize.py makes", why_);
  }
  std::optional<std::int32_t> token_id(std::string_view) const override { return std::nullopt; }

 private:
  std::string why_;
};

void check_inside_vocabulary(const Tokenizer& tokenizer, const std::filesystem::path& folder,
                             const costmodel::BackboneShape& backbone) {
  const TokenizerFacts& facts = tokenizer.facts();
  if (facts.vocabulary > backbone.vocabulary) {
    throw error("{}: the tokenizer knows {} ids, the backbone only {}; give the tokenizer of this backbone",
                folder.string(), facts.vocabulary, backbone.vocabulary);
  }
}

}  // namespace

std::pair<std::vector<std::int32_t>, std::vector<std::int32_t>> encode_parts(const Tokenizer& tokenizer,
                                                                             std::string_view before,
                                                                             std::string_view after) {
  std::vector<std::int32_t> head = tokenizer.encode(before);
  std::vector<std::int32_t> whole = tokenizer.encode(std::string(before) + std::string(after));
  if (whole.size() < head.size() || !std::equal(head.begin(), head.end(), whole.begin())) {
    return {std::move(head), tokenizer.encode(after)};
  }
  whole.erase(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(head.size()));
  return {std::move(head), std::move(whole)};
}

std::unique_ptr<Tokenizer> make_tokenizer(const std::filesystem::path& folder,
                                          const costmodel::BackboneShape& backbone) {
  if (folder.empty()) {
    return std::make_unique<MissingTokenizer>(fmt::format("the built-in shape {} has no tokenizer", backbone.name),
                                              backbone.vocabulary);
  }
  std::unique_ptr<Tokenizer> tokenizer;
  if (std::filesystem::exists(folder / "braid_tokenizer.json")) {
    tokenizer = make_byte_tokenizer(folder / "braid_tokenizer.json");
  } else if (std::filesystem::exists(folder / "tokenizer.model")) {
    tokenizer = make_sentencepiece_tokenizer(folder);
  } else {
    return std::make_unique<MissingTokenizer>(
        fmt::format("the tokenizer of {} is not built in (no tokenizer.model)", folder.string()), backbone.vocabulary);
  }
  check_inside_vocabulary(*tokenizer, folder, backbone);
  return tokenizer;
}

}  // namespace braid::workload
