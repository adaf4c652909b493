#pragma once

#include <string>

#include "base/steady_clock.h"

namespace braid::cli {

/// A line on stderr that changes in place on a terminal, once a thing has taken a second; nothing elsewhere.
class Progress {
 public:
  Progress(std::string what, bool quiet);
  ~Progress();
  /// `share` of the work that is done, 0 to 1.
  void update(double share);

 private:
  std::string what_;
  bool shown_ = false;
  bool enabled_;
  SteadyClock::time_point start_;
};

/// Whether stderr is a terminal.
bool on_terminal();

}  // namespace braid::cli
