#include "workload/text/unicode.h"

#include <unicode/bytestream.h>
#include <unicode/edits.h>
#include <unicode/normalizer2.h>
#include <unicode/uchar.h>
#include <unicode/utf8.h>

#include "base/error.h"

namespace braid::workload {
namespace {

const icu::Normalizer2& normalizer_of(NormalForm form) {
  UErrorCode status = U_ZERO_ERROR;
  const icu::Normalizer2* found = nullptr;
  switch (form) {
    case NormalForm::nfc:
      found = icu::Normalizer2::getNFCInstance(status);
      break;
    case NormalForm::nfd:
      found = icu::Normalizer2::getNFDInstance(status);
      break;
    case NormalForm::nfkc:
      found = icu::Normalizer2::getNFKCInstance(status);
      break;
    case NormalForm::nfkd:
      found = icu::Normalizer2::getNFKDInstance(status);
      break;
  }
  BRAID_CHECK(U_SUCCESS(status) && found, "ICU has no normalizer: {}", u_errorName(status));
  return *found;
}

UChar32 first_character(std::string_view text) {
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(text.data());
  std::int32_t at = 0;
  UChar32 character = 0;
  U8_NEXT(bytes, at, static_cast<std::int32_t>(text.size()), character);
  return character;
}

/// And takes it away from the text.
UChar32 pop_last_character(std::string_view& text) {
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(text.data());
  auto at = static_cast<std::int32_t>(text.size());
  UChar32 character = 0;
  U8_PREV(bytes, 0, at, character);
  text.remove_suffix(text.size() - static_cast<std::size_t>(at));
  return character;
}

bool is_of_word(UChar32 character) {
  if (character < 0) return false;
  const auto in_classes = U_GET_GC_MASK(character) & (U_GC_M_MASK | U_GC_ND_MASK | U_GC_PC_MASK);
  return in_classes != 0 || u_hasBinaryProperty(character, UCHAR_ALPHABETIC) ||
         u_hasBinaryProperty(character, UCHAR_JOIN_CONTROL);
}

}  // namespace

AlignedText normalized(AlignedText text, NormalForm form) {
  const icu::Normalizer2& normalizer = normalizer_of(form);
  UErrorCode status = U_ZERO_ERROR;
  if (normalizer.isNormalizedUTF8(text.text, status) && U_SUCCESS(status)) return text;
  AlignedText result;
  result.begin = text.begin;
  icu::StringByteSink<std::string> sink(&result.text);
  icu::Edits edits;
  normalizer.normalizeUTF8(0, text.text, sink, &edits, status);
  BRAID_CHECK(U_SUCCESS(status), "ICU cannot normalize: {}", u_errorName(status));
  result.ends.reserve(result.text.size());
  std::size_t from = 0;
  for (auto edit = edits.getFineIterator(); edit.next(status);) {
    const auto before = static_cast<std::size_t>(edit.oldLength()), after = static_cast<std::size_t>(edit.newLength());
    for (std::size_t i = 0; i < after; ++i) {
      const std::size_t last = edit.hasChange() ? from + before : from + i + 1;
      result.ends.push_back(text.begin_of(last));
    }
    from += before;
  }
  BRAID_CHECK(result.ends.size() == result.text.size(), "the normalizer told {} of {} bytes", result.ends.size(),
              result.text.size());
  return result;
}

std::size_t leading_space(std::string_view text) {
  std::size_t space = 0;
  while (space < text.size()) {
    const UChar32 character = first_character(text.substr(space));
    if (character < 0 || !u_isUWhiteSpace(character)) break;
    space += static_cast<std::size_t>(U8_LENGTH(character));
  }
  return space;
}

std::size_t trailing_space(std::string_view text) {
  std::string_view rest = text;
  while (!rest.empty()) {
    std::string_view shorter = rest;
    const UChar32 character = pop_last_character(shorter);
    if (character < 0 || !u_isUWhiteSpace(character)) break;
    rest = shorter;
  }
  return text.size() - rest.size();
}

bool begins_with_word(std::string_view text) {
  return !text.empty() && is_of_word(first_character(text));
}

bool ends_with_word(std::string_view text) {
  return !text.empty() && is_of_word(pop_last_character(text));
}

std::size_t character_size(std::string_view text) {
  const UChar32 character = first_character(text);
  return character < 0 ? 1 : static_cast<std::size_t>(U8_LENGTH(character));
}

}  // namespace braid::workload
