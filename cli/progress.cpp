#include "cli/progress.h"

#include <algorithm>

#include <fmt/core.h>
#include <unistd.h>

namespace braid::cli {

bool on_terminal() {
  return ::isatty(STDERR_FILENO) != 0;
}

Progress::Progress(std::string what, bool quiet)
    : what_(std::move(what)), enabled_(!quiet && on_terminal()), start_(SteadyClock::now()) {}

Progress::~Progress() {
  if (shown_) fmt::print(stderr, "\r\x1b[K");
}

void Progress::update(double share) {
  const double elapsed = seconds_since(start_);
  if (!enabled_ || elapsed < 1) return;
  constexpr int kWidth = 30;
  const int filled = static_cast<int>(std::clamp(share, 0.0, 1.0) * kWidth);
  fmt::print(stderr, "\r\x1b[K{} [{}{}] {:3.0f} %", what_, std::string(static_cast<std::size_t>(filled), '#'),
             std::string(static_cast<std::size_t>(kWidth - filled), '.'), 100 * share);
  if (share > 0.01) fmt::print(stderr, "  {:.0f} s left", elapsed * (1 - share) / share);
  std::fflush(stderr);
  shown_ = true;
}

}  // namespace braid::cli
