#include "traces/dates.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>

#include <fmt/format.h>

#include "base/units.h"

namespace braid::traces {
namespace {

/// Takes digits off the front, and the mark behind them ('\0': none).
std::optional<unsigned> take(std::string_view& text, std::size_t digits, char mark) {
  if (text.size() < digits) return std::nullopt;
  unsigned number = 0;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + digits, number);
  if (fault != std::errc() || end != text.data() + digits) return std::nullopt;
  text.remove_prefix(digits);
  if (mark == '\0') return number;
  if (text.empty() || (text.front() != mark && !(mark == ' ' && text.front() == 'T'))) return std::nullopt;
  text.remove_prefix(1);
  return number;
}

/// "PDT", "UTC", "AEST".
bool is_zone(std::string_view text) {
  return text.size() >= 2 && text.size() <= 5 &&
         std::all_of(text.begin(), text.end(), [](char letter) { return letter >= 'A' && letter <= 'Z'; });
}

bool is_offset(std::string_view text) {
  if (text.empty() || text == "Z") return true;
  const bool apart = text.front() == ' ';
  if (apart) text.remove_prefix(1);
  if (apart && is_zone(text)) return true;
  if (text.empty() || (text.front() != '+' && text.front() != '-')) return false;
  text.remove_prefix(1);
  if (!take(text, 2, '\0') || text.empty()) return text.empty();
  if (text.front() == ':') text.remove_prefix(1);
  return take(text, 2, '\0') && text.empty();
}

}  // namespace

std::optional<double> parse_date(std::string_view text) {
  const auto year = take(text, 4, '-'), month = take(text, 2, '-'), day = take(text, 2, ' ');
  const auto hour = take(text, 2, ':'), minute = take(text, 2, ':'), second = take(text, 2, '\0');
  if (!year || !month || !day || !hour || !minute || !second) return std::nullopt;
  const std::chrono::year_month_day date{std::chrono::year(static_cast<int>(*year)), std::chrono::month(*month),
                                         std::chrono::day(*day)};
  if (!date.ok() || *hour > 23 || *minute > 59 || *second > 60) return std::nullopt;
  double fraction = 0;
  if (text.starts_with('.')) {
    const auto [end, fault] =
        std::from_chars(text.data(), text.data() + text.size(), fraction, std::chars_format::fixed);
    if (fault != std::errc()) return std::nullopt;
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  }
  if (!is_offset(text)) return std::nullopt;
  const double days = static_cast<double>(std::chrono::sys_days(date).time_since_epoch().count());
  return days * kDay + *hour * kHour + *minute * kMinute + *second + fraction;
}

std::string day_of(double seconds) {
  const auto days = std::chrono::days(static_cast<std::int64_t>(std::floor(seconds / kDay)));
  const std::chrono::year_month_day date{std::chrono::sys_days(days)};
  return fmt::format("{:04}-{:02}-{:02}", static_cast<int>(date.year()), static_cast<unsigned>(date.month()),
                     static_cast<unsigned>(date.day()));
}

}  // namespace braid::traces
