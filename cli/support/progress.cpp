#include "cli/support/progress.h"

#include <algorithm>

#include <fmt/core.h>

#include "base/terminal.h"

namespace braid::cli {

Progress::Progress(std::string what, bool quiet, Elsewhere elsewhere)
    : what_(std::move(what)),
      enabled_(!quiet),
      terminal_(is_terminal(stderr)),
      lines_(elsewhere == Elsewhere::lines),
      start_(SteadyClock::now()) {}

Progress::~Progress() {
  if (shown_) fmt::print(stderr, "\r\x1b[K");
}

void Progress::update(double share, const std::string& now) {
  const double elapsed = seconds_since(start_);
  if (!enabled_ || elapsed < 1) return;
  std::string left;
  if (share > 0.01) left = fmt::format(", {:.0f} s left", std::max(0.0, elapsed * (1 - share) / share));
  const std::string doing = now.empty() ? now : ": " + now;
  if (!terminal_) {
    constexpr double kEvery = 5;
    if (!lines_ || (told_ > 0 && elapsed - told_ < kEvery)) return;
    told_ = elapsed;
    fmt::print(stderr, "{} {:.0f} %{}{}\n", what_, 100 * std::min(share, 1.0), doing, left);
    return;
  }
  constexpr int kWidth = 30;
  const int filled = static_cast<int>(std::clamp(share, 0.0, 1.0) * kWidth);
  fmt::print(stderr, "\r\x1b[K{} [{}{}] {:3.0f} %{}{}", what_, std::string(static_cast<std::size_t>(filled), '#'),
             std::string(static_cast<std::size_t>(kWidth - filled), '.'), 100 * std::min(share, 1.0), doing, left);
  std::fflush(stderr);
  shown_ = true;
}

}  // namespace braid::cli
