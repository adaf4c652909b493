#pragma once

#include <string>

#include "base/steady_clock.h"

namespace braid::cli {

/// What goes on, on stderr, once it has taken a second: on a terminal a line that changes in place, elsewhere a line
/// now and then.
class Progress {
 public:
  enum class Elsewhere { nothing, lines };
  Progress(std::string what, bool quiet, Elsewhere elsewhere = Elsewhere::nothing);
  ~Progress();
  /// `share` of the work that is done, 0 to 1, and what is done now.
  void update(double share, const std::string& now = {});

 private:
  std::string what_;
  bool shown_ = false;
  bool enabled_;
  bool terminal_;
  bool lines_;
  SteadyClock::time_point start_;
  double told_ = 0;  // seconds, when a line was printed last
};

}  // namespace braid::cli
