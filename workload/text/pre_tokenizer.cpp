#include <algorithm>
#include <array>

#include "workload/text/pattern.h"
#include "workload/text/text_steps.h"
#include "workload/text/unicode.h"

namespace braid::workload {
namespace {

constexpr const char* kGpt2Words = R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
constexpr std::string_view kMetaspace = "\xE2\x96\x81";

/// What becomes of a match that cuts a text.
enum class CutKind { isolated, removed, merged_with_previous, merged_with_next, contiguous };

CutKind read_cut_kind(const Node& node) {
  const std::string name = node.string_at("behavior");
  if (name == "Isolated") return CutKind::isolated;
  if (name == "Removed") return CutKind::removed;
  if (name == "MergedWithPrevious") return CutKind::merged_with_previous;
  if (name == "MergedWithNext") return CutKind::merged_with_next;
  if (name == "Contiguous") return CutKind::contiguous;
  throw not_built_in(node.at("behavior"), "the behavior " + name);
}

struct Stretch {
  ByteRange range;
  bool matches = false;
};

std::vector<Stretch> stretches_of(std::size_t size, const std::vector<ByteRange>& matches, bool invert) {
  std::vector<Stretch> all;
  std::size_t done = 0;
  const auto until = [&](std::size_t end, bool match) {
    if (done < end) all.push_back({{done, end}, match != invert});
    done = end;
  };
  for (const ByteRange& match : matches) {
    until(match.begin, false);
    until(match.end, true);
  }
  until(size, false);
  return all;
}

std::vector<ByteRange> cut(const std::vector<Stretch>& all, CutKind kind) {
  std::vector<ByteRange> ranges;
  bool joined = false;  // whether the last range may grow
  const auto put = [&](const ByteRange& range, bool onto_last) {
    if (onto_last && !ranges.empty()) {
      ranges.back().end = range.end;
    } else {
      ranges.push_back(range);
    }
  };
  switch (kind) {
    case CutKind::isolated:
      for (const Stretch& each : all) put(each.range, false);
      break;
    case CutKind::removed:
      for (const Stretch& each : all) {
        if (!each.matches) put(each.range, false);
      }
      break;
    case CutKind::contiguous:
      for (std::size_t i = 0; i < all.size(); ++i) put(all[i].range, i > 0 && all[i].matches == all[i - 1].matches);
      break;
    case CutKind::merged_with_previous:
      // A match goes to what is before it, unless that is a match.
      joined = false;
      for (const Stretch& each : all) {
        put(each.range, each.matches && joined);
        joined = !each.matches;
      }
      break;
    case CutKind::merged_with_next:
      joined = false;
      for (const Stretch& each : all) {
        put(each.range, !each.matches && joined);
        joined = each.matches;
      }
      break;
  }
  return ranges;
}

/// Cuts every word anew; `find` gives the matches in one.
template <typename Find>
Words cut_words(Words words, CutKind kind, bool invert, const Find& find) {
  std::vector<ByteRange> ranges;
  for (const ByteRange& word : words.ranges) {
    const std::string_view text = std::string_view(words.text.text).substr(word.begin, word.end - word.begin);
    for (const ByteRange& range : cut(stretches_of(text.size(), find(text), invert), kind))
      ranges.push_back({word.begin + range.begin, word.begin + range.end});
  }
  words.ranges = std::move(ranges);
  return words;
}

/// Puts every word down anew with `put(word, result)`, where a word is {text, range of it}.
template <typename Put>
Words rewrite_words(const Words& words, const Put& put) {
  Words result;
  result.text.begin = words.text.begin;
  result.text.text.reserve(words.text.text.size() + words.text.text.size() / 2);
  result.text.ends.reserve(words.text.text.size() + words.text.text.size() / 2);
  for (const ByteRange& word : words.ranges) {
    const std::size_t begin = result.text.text.size();
    put(word, result.text);
    if (result.text.text.size() > begin) result.ranges.push_back({begin, result.text.text.size()});
  }
  return result;
}

std::vector<ByteRange> find_digits(std::string_view text) {
  static const Pattern kDigit(R"(\p{N})");
  return kDigit.matches(text);
}

/// The character that stands for each byte: itself where it is printable, else one past U+00FF.
const std::array<std::string, 256>& byte_characters() {
  static const std::array<std::string, 256> kCharacters = [] {
    std::array<std::string, 256> characters;
    unsigned next = 256;
    for (unsigned byte = 0; byte < 256; ++byte) {
      const bool itself = (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
      const unsigned point = itself ? byte : next++;
      std::string& text = characters[byte];
      if (point < 0x80) {
        text = static_cast<char>(point);
      } else {
        text = {static_cast<char>(0xC0 | point >> 6), static_cast<char>(0x80 | (point & 0x3F))};
      }
    }
    return characters;
  }();
  return kCharacters;
}

Words spell_bytes(const Words& words) {
  const auto& characters = byte_characters();
  return rewrite_words(words, [&](const ByteRange& word, AlignedText& result) {
    for (std::size_t i = word.begin; i < word.end; ++i)
      result.append(characters[static_cast<unsigned char>(words.text.text[i])], words.text.ends[i]);
  });
}

Words put_space_before(const Words& words) {
  return rewrite_words(words, [&](const ByteRange& word, AlignedText& result) {
    if (words.text.text[word.begin] != ' ') result.append(" ", words.text.begin_of(word.begin));
    for (std::size_t i = word.begin; i < word.end; ++i)
      result.append(std::string_view(&words.text.text[i], 1), words.text.ends[i]);
  });
}

void add_byte_level(CutSteps& steps, bool add_prefix_space, bool gpt2_words) {
  if (add_prefix_space) steps.emplace_back(put_space_before);
  if (gpt2_words) {
    steps.emplace_back([pattern = Pattern(kGpt2Words)](Words words) {
      return cut_words(std::move(words), CutKind::isolated, false,
                       [&](std::string_view text) { return pattern.matches(text); });
    });
  }
  steps.emplace_back(spell_bytes);
}

void add_metaspace(CutSteps& steps, std::string_view replacement, PrefixSpace prefix, bool split) {
  steps.emplace_back([mark = std::string(replacement), prefix](const Words& words) {
    return rewrite_words(words, [&](const ByteRange& word, AlignedText& result) {
      const AlignedText& text = words.text;
      const std::string_view rest = std::string_view(text.text).substr(word.begin, word.end - word.begin);
      const std::uint32_t begin = text.begin_of(word.begin);
      const bool wanted = prefix == PrefixSpace::always || (prefix == PrefixSpace::first && begin == 0);
      if (wanted && !rest.starts_with(' ') && !rest.starts_with(mark)) result.append(mark, begin);
      for (std::size_t i = word.begin; i < word.end; ++i)
        result.append(text.text[i] == ' ' ? std::string_view(mark) : std::string_view(&text.text[i], 1), text.ends[i]);
    });
  });
  if (!split) return;
  steps.emplace_back([mark = std::string(replacement)](Words words) {
    return cut_words(std::move(words), CutKind::merged_with_next, false,
                     [&](std::string_view text) { return find_string(text, mark); });
  });
}

Pattern read_pattern(const Node& expression) {
  try {
    return Pattern(expression.as_string("Regex"));
  } catch (const Error& failure) {
    throw not_built_in(expression, failure.what());
  }
}

void add_split(CutSteps& steps, const Node& node) {
  refuse_other_keys(node, "a Split", {"type", "pattern", "behavior", "invert"});
  const CutKind kind = read_cut_kind(node);
  const bool invert = node.bool_or("invert", false);
  const Node& pattern = node.at("pattern");
  if (const Node* expression = pattern.find("Regex")) {
    steps.emplace_back([regex = read_pattern(*expression), kind, invert](Words words) {
      return cut_words(std::move(words), kind, invert, [&](std::string_view text) { return regex.matches(text); });
    });
    return;
  }
  const std::string wanted = pattern.string_at("String");
  if (wanted.empty()) throw not_built_in(pattern, "a Split at nothing");
  steps.emplace_back([wanted, kind, invert](Words words) {
    return cut_words(std::move(words), kind, invert, [&](std::string_view text) { return find_string(text, wanted); });
  });
}

void read_metaspace(CutSteps& steps, const Node& node) {
  refuse_other_keys(node, "a Metaspace", {"type", "replacement", "prepend_scheme", "split", "add_prefix_space", "str_rep"});
  const std::string scheme =
      node.string_or("prepend_scheme", node.bool_or("add_prefix_space", true) ? "always" : "never");
  if (scheme != "always" && scheme != "first" && scheme != "never")
    throw not_built_in(node, "the prepend_scheme " + scheme);
  const PrefixSpace prefix = scheme == "always"  ? PrefixSpace::always
                             : scheme == "first" ? PrefixSpace::first
                                                 : PrefixSpace::never;
  add_metaspace(steps, node.string_or("replacement", std::string(kMetaspace)), prefix, node.bool_or("split", true));
}

void add_cut(CutSteps& steps, const Node& node) {
  if (node.is_null()) return;
  const std::string type = node.string_at("type");
  if (type == "Sequence") {
    refuse_other_keys(node, "a Sequence", {"type", "pretokenizers"});
    for (const Node& each : node.at("pretokenizers").sequence("pretokenizers")) add_cut(steps, each);
  } else if (type == "ByteLevel") {
    refuse_other_keys(node, "a ByteLevel", {"type", "add_prefix_space", "trim_offsets", "use_regex"});
    add_byte_level(steps, node.bool_or("add_prefix_space", true), node.bool_or("use_regex", true));
  } else if (type == "Split") {
    add_split(steps, node);
  } else if (type == "Digits") {
    refuse_other_keys(node, "a Digits", {"type", "individual_digits"});
    const CutKind kind = node.bool_or("individual_digits", false) ? CutKind::isolated : CutKind::contiguous;
    steps.emplace_back([kind](Words words) { return cut_words(std::move(words), kind, false, find_digits); });
  } else if (type == "Metaspace") {
    read_metaspace(steps, node);
  } else {
    throw not_built_in(node, "the pre-tokenizer " + type);
  }
}

}  // namespace

CutSteps read_pre_tokenizer(const Node& node) {
  CutSteps steps;
  add_cut(steps, node);
  return steps;
}

CutSteps byte_level_cut(bool add_prefix_space) {
  CutSteps steps;
  add_byte_level(steps, add_prefix_space, true);
  return steps;
}

CutSteps pattern_cut(const std::string& expression, bool add_prefix_space) {
  CutSteps steps;
  steps.emplace_back([pattern = Pattern(expression)](Words words) {
    return cut_words(std::move(words), CutKind::isolated, false,
                     [&](std::string_view text) { return pattern.matches(text); });
  });
  add_byte_level(steps, add_prefix_space, false);
  return steps;
}

CutSteps metaspace_cut(PrefixSpace prefix) {
  CutSteps steps;
  add_metaspace(steps, kMetaspace, prefix, false);
  return steps;
}

}  // namespace braid::workload
