#pragma once

#include <string>

namespace braid {

/// Today's date and time in the form of strftime, the same in all of a run: when it was first asked, in local time, or
/// what SOURCE_DATE_EPOCH says, in UTC, where the environment has it. Throws Error where that is no number of seconds
/// since 1970, and where the form gives more than 4,096 bytes.
std::string date_text(const std::string& form);

/// Has processes that are started from here on take today for this one's today.
void pass_date_on();

}  // namespace braid
