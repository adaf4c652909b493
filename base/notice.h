#pragma once

#include <string>

namespace braid {

/// Tells the user of something that was taken otherwise than they may think: "note: WHAT" on stderr, each line once a
/// process.
void notice(const std::string& what);

/// All that was told so far, for a process that this one starts, and which need not tell it again.
std::string told_notices();
void take_for_told(const std::string& notices);

/// From here on `notice` tells nothing: for the ranks that find the same as another one.
void silence_notices();

}  // namespace braid
