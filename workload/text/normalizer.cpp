#include <algorithm>
#include <array>

#include "workload/text/text_steps.h"
#include "workload/text/unicode.h"

namespace braid::workload {
namespace {

AlignedText replaced(const AlignedText& text, std::string_view wanted, std::string_view with) {
  AlignedText result;
  result.begin = text.begin;
  std::size_t done = 0;
  const auto copy_until = [&](std::size_t end) {
    for (; done < end; ++done) result.append(std::string_view(&text.text[done], 1), text.ends[done]);
  };
  for (const ByteRange& match : find_string(text.text, wanted)) {
    copy_until(match.begin);
    result.append(with, text.ends[match.end - 1]);
    done = match.end;
  }
  copy_until(text.text.size());
  return result;
}

void add_normalizer(NormalizeSteps& steps, const Node& node) {
  constexpr std::array<std::pair<std::string_view, NormalForm>, 4> kForms = {
      {{"NFC", NormalForm::nfc}, {"NFD", NormalForm::nfd}, {"NFKC", NormalForm::nfkc}, {"NFKD", NormalForm::nfkd}}};
  if (node.is_null()) return;
  const std::string type = node.string_at("type");
  const auto form = std::find_if(kForms.begin(), kForms.end(), [&](const auto& each) { return each.first == type; });
  if (form != kForms.end()) {
    refuse_other_keys(node, "a normal form", {"type"});
    steps.emplace_back([form = form->second](AlignedText text) { return normalized(std::move(text), form); });
  } else if (type == "Sequence") {
    refuse_other_keys(node, "a Sequence", {"type", "normalizers"});
    for (const Node& each : node.at("normalizers").sequence("normalizers")) add_normalizer(steps, each);
  } else if (type == "Prepend") {
    refuse_other_keys(node, "a Prepend", {"type", "prepend"});
    steps.emplace_back([prefix = node.string_at("prepend")](AlignedText text) {
      if (text.text.empty()) return text;
      AlignedText result;
      result.begin = text.begin;
      result.append(prefix, text.begin);
      result.text += text.text;
      result.ends.insert(result.ends.end(), text.ends.begin(), text.ends.end());
      return result;
    });
  } else if (type == "Replace" && node.at("pattern").find("String")) {
    refuse_other_keys(node, "a Replace", {"type", "pattern", "content"});
    const std::string wanted = node.at("pattern").string_at("String");
    if (wanted.empty()) throw not_built_in(node, "a Replace of nothing");
    steps.emplace_back(
        [wanted, with = node.string_at("content")](const AlignedText& text) { return replaced(text, wanted, with); });
  } else {
    throw not_built_in(node, "the normalizer " + type);
  }
}

}  // namespace

NormalizeSteps read_normalizer(const Node& node) {
  NormalizeSteps steps;
  add_normalizer(steps, node);
  return steps;
}

NormalizeSteps nfc_normalizer() {
  return {[](AlignedText text) { return normalized(std::move(text), NormalForm::nfc); }};
}

AlignedText normalized(AlignedText text, const NormalizeSteps& steps) {
  for (const auto& step : steps) text = step(std::move(text));
  return text;
}

}  // namespace braid::workload
