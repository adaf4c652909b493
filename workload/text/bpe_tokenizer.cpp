#include "workload/text/bpe_tokenizer.h"

namespace braid::workload {

BpeTokenizer::BpeTokenizer(TokenizerFacts facts, std::unique_ptr<const Bpe> model, AddedVocabulary added,
                           NormalizeSteps normalizer, CutSteps cut)
    : Tokenizer(std::move(facts)),
      model_(std::move(model)),
      added_(std::move(added)),
      normalizer_(std::move(normalizer)),
      cut_(std::move(cut)),
      in_text_(added_.finder(false, [](const std::string& content) { return content; })),
      in_normalized_text_(added_.finder(true, [&](const std::string& content) {
        return normalized(AlignedText::of(content, 0), normalizer_).text;
      })) {}

std::vector<std::int32_t> BpeTokenizer::encode(std::string_view text) const {
  std::vector<std::int32_t> ids;
  for (const auto& [range, id] : in_text_.split(text)) {
    if (id) {
      ids.push_back(*id);
      continue;
    }
    const AlignedText plain =
        normalized(AlignedText::of(text.substr(range.begin, range.end - range.begin), range.begin), normalizer_);
    for (const auto& [part, part_id] : in_normalized_text_.split(plain.text)) {
      if (part_id) {
        ids.push_back(*part_id);
      } else {
        encode_plain(plain.part(part.begin, part.end), ids);
      }
    }
  }
  return ids;
}

void BpeTokenizer::encode_plain(AlignedText text, std::vector<std::int32_t>& ids) const {
  Words words;
  words.ranges = {{0, text.text.size()}};
  words.text = std::move(text);
  for (const auto& step : cut_) words = step(std::move(words));
  for (const ByteRange& word : words.ranges) {
    const std::string_view letters = words.text.text;
    for (const Bpe::Part& part : model_->encode(letters.substr(word.begin, word.end - word.begin)))
      ids.push_back(part.id);
  }
}

}  // namespace braid::workload
