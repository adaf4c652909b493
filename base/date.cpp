#include "base/date.h"

#include <charconv>
#include <cstdlib>
#include <cstring>
#include <ctime>

#include "base/error.h"

namespace braid {
namespace {

constexpr const char* kVariable = "SOURCE_DATE_EPOCH";

std::tm find_today() {
  std::tm today{};
  if (const char* given = std::getenv(kVariable); given && *given) {
    std::int64_t seconds = 0;
    const char* end = given + std::strlen(given);
    const auto [read, status] = std::from_chars(given, end, seconds);
    const std::time_t time = seconds;
    if (status != std::errc() || read != end || seconds < 0 || !::gmtime_r(&time, &today))
      throw error("{} is '{}'; give seconds since 1970, or unset it", kVariable, given);
    return today;
  }
  const std::time_t now = std::time(nullptr);
  ::localtime_r(&now, &today);
  return today;
}

const std::tm& today() {
  static const std::tm found = find_today();
  return found;
}

}  // namespace

std::string date_text(const std::string& form) {
  if (form.empty()) return "";
  char text[4096];
  // A blank in front tells a form that gives nothing from one that gives too much.
  const std::size_t size = std::strftime(text, sizeof text, (" " + form).c_str(), &today());
  if (size == 0) throw error("the form of a date gives more than {} bytes", sizeof text);
  return std::string(text + 1, size - 1);
}

void pass_date_on() {
  if (std::getenv(kVariable)) return;
  std::tm date = today();
  ::setenv(kVariable, std::to_string(::timegm(&date)).c_str(), 0);
}

}  // namespace braid
