#include "base/regex.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "base/error.h"

namespace braid {
namespace {

/// What a thread needs to match.
struct Matcher {
  pcre2_match_data* data = pcre2_match_data_create(1, nullptr);
  pcre2_match_context* patient = pcre2_match_context_create(nullptr);
  pcre2_jit_stack* stack = pcre2_jit_stack_create(std::size_t{1} << 15, std::size_t{1} << 26, nullptr);

  Matcher() {
    BRAID_CHECK(data && patient && stack, "no memory to match with");
    pcre2_jit_stack_assign(patient, nullptr, stack);
    pcre2_set_match_limit(patient, 0xFFFFFFFFU);
  }
  ~Matcher() {
    pcre2_jit_stack_free(stack);
    pcre2_match_context_free(patient);
    pcre2_match_data_free(data);
  }
  Matcher(const Matcher&) = delete;
  Matcher& operator=(const Matcher&) = delete;
};

Matcher& matcher_of_thread() {
  static thread_local Matcher matcher;
  return matcher;
}

PCRE2_SPTR units(std::string_view text) {
  return reinterpret_cast<PCRE2_SPTR>(text.data());
}

std::string pcre2_message(int number) {
  PCRE2_UCHAR text[256];
  pcre2_get_error_message(number, text, sizeof text);
  return reinterpret_cast<const char*>(text);
}

}  // namespace

struct Regex::Code {
  pcre2_code* code = nullptr;

  ~Code() { pcre2_code_free(code); }
};

Regex::Regex(const std::string& expression, Characters characters)
    : expression_(expression), code_(std::make_unique<Code>()) {
  const bool unicode = characters == Characters::unicode;
  int number = 0;
  PCRE2_SIZE offset = 0;
  code_->code = pcre2_compile(units(expression), expression.size(),
                              unicode ? PCRE2_UTF | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C : 0, &number, &offset, nullptr);
  if (!code_->code)
    throw BrokenRegex(fmt::format("'{}' is no regular expression: {} at character {}", expression,
                                  pcre2_message(number), offset + 1));
  if (unicode) pcre2_jit_compile(code_->code, PCRE2_JIT_COMPLETE);  // where it cannot, matching is slower
}

Regex::~Regex() = default;

bool Regex::matches(std::string_view text) const {
  const int found = pcre2_match(code_->code, units(text), text.size(), 0, PCRE2_ANCHORED | PCRE2_ENDANCHORED,
                                matcher_of_thread().data, nullptr);
  if (found >= 0) return true;
  if (found == PCRE2_ERROR_NOMATCH) return false;
  throw error("the regular expression '{}' takes too long to match '{}'; give a simpler one", expression_, text);
}

std::optional<Regex::Match> Regex::find(std::string_view text, std::size_t from) const {
  const Matcher& matcher = matcher_of_thread();
  const int found = pcre2_match(code_->code, units(text), text.size(), from, from == 0 ? 0 : PCRE2_NO_UTF_CHECK,
                                matcher.data, matcher.patient);
  if (found == PCRE2_ERROR_NOMATCH) return std::nullopt;
  if (found < 0) throw error("the text cannot be searched ({}); mend it", pcre2_message(found));
  const PCRE2_SIZE* ends = pcre2_get_ovector_pointer(matcher.data);
  return Match{ends[0], ends[1]};
}

}  // namespace braid
