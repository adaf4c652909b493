#include "workload/text/tokenizer.h"

#include <algorithm>
#include <mutex>

#include "base/error.h"
#include "workload/text/huggingface_tokenizer.h"

namespace braid::workload {
namespace {

std::unique_ptr<Tokenizer> read_tokenizer(const std::filesystem::path& folder,
                                          const costmodel::BackboneShape& backbone) {
  if (folder.empty())
    throw error(
        "the built-in shape {} has no tokenizer; give a dataset of input_ids, which scripts/pretokenize.py makes",
        backbone.name);
  if (const auto file = folder / "braid_tokenizer.json"; std::filesystem::exists(file))
    return make_byte_tokenizer(file);
  return make_huggingface_tokenizer(folder);
}

class LazyTokenizer : public Tokenizer {
 public:
  LazyTokenizer(std::filesystem::path folder, costmodel::BackboneShape backbone)
      : Tokenizer({.bos = {}, .eos = {}, .chat_template = {}}),
        folder_(std::move(folder)),
        backbone_(std::move(backbone)) {}

  std::vector<std::int32_t> encode(std::string_view text) const override { return read().encode(text); }
  std::optional<std::int32_t> token_id(std::string_view token) const override { return read().token_id(token); }
  const TokenizerFacts& facts() const override { return read().facts(); }

 private:
  const Tokenizer& read() const {
    std::call_once(once_, [&] {
      auto tokenizer = read_tokenizer(folder_, backbone_);
      if (const std::int64_t ids = tokenizer->facts().vocabulary; ids > backbone_.vocabulary)
        throw error("{}: the tokenizer knows {} ids, the backbone only {}; give the tokenizer of this backbone",
                    folder_.string(), ids, backbone_.vocabulary);
      tokenizer_ = std::move(tokenizer);
    });
    return *tokenizer_;
  }

  std::filesystem::path folder_;
  costmodel::BackboneShape backbone_;
  mutable std::once_flag once_;
  mutable std::unique_ptr<Tokenizer> tokenizer_;
};

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
  return std::make_unique<LazyTokenizer>(folder, backbone);
}

}  // namespace braid::workload
