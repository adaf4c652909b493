#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace braid::traces {

/// "2017-10-09 07:01:55", with an optional 'T' between, fraction of a second, and offset ("Z", "+08:00", "+0800",
/// "+08", or a zone's letters, " PDT"): seconds since 1970 by the clock on the wall, an offset left out of account, so
/// that hours of the day stay what they were. Nothing for any other text.
std::optional<double> parse_date(std::string_view text);

/// The day of such a time: "2017-10-09".
std::string day_of(double seconds);

}  // namespace braid::traces
