#include "cli/support/launcher_output.h"

#include <algorithm>

#include <fmt/format.h>

namespace braid::cli {
namespace {

bool is_dashes(std::string_view line) {
  constexpr std::size_t kFewest = 40;
  return line.size() >= kFewest && line.find_first_not_of('-') == std::string_view::npos;
}

constexpr std::string_view kOwnWords = "mpirun: ";

/// The text after `before` up to one of `ends`; empty where there is none.
std::string_view after(std::string_view text, std::string_view before, std::string_view ends) {
  const std::size_t place = text.find(before);
  if (place == std::string_view::npos) return {};
  text.remove_prefix(place + before.size());
  return text.substr(0, text.find_first_of(ends));
}

/// Of "... process rank 1 with PID 17 on node n exited on signal 9 (Killed)."
std::string account_of(std::string_view paragraph) {
  const std::string_view rank = after(paragraph, "process rank ", " \n");
  const std::string_view signal = after(paragraph, "exited on signal ", ".\n");
  if (rank.empty() || signal.empty()) return {};
  return fmt::format("rank {} was ended by signal {}, and the others with it", rank, signal);
}

}  // namespace

std::string LauncherOutput::pass_on(std::string_view bytes) {
  std::string out;
  for (const char byte : bytes) {
    line_ += byte;
    if (byte == '\n') end_line(out);
  }
  // What may be mpirun's waits for the line's end; progress, which has none for long, does not.
  const bool may_be_own = line_.starts_with(kOwnWords) || kOwnWords.starts_with(line_);
  if (!in_paragraph_ && !may_be_own && line_.find_first_not_of('-') != std::string::npos) {
    out += line_;
    line_.clear();
  }
  return out;
}

std::string LauncherOutput::rest() {
  std::string out = in_paragraph_ ? std::string() : line_;
  if (in_paragraph_ && ended_.empty()) ended_ = account_of(paragraph_);
  line_.clear();
  return out;
}

void LauncherOutput::end_line(std::string& out) {
  const std::string_view text = std::string_view(line_).substr(0, line_.size() - 1);
  if (is_dashes(text)) {
    if (in_paragraph_ && ended_.empty()) ended_ = account_of(paragraph_);
    in_paragraph_ = !in_paragraph_;
    paragraph_.clear();
  } else if (in_paragraph_) {
    paragraph_ += line_;
  } else if (!line_.starts_with(kOwnWords)) {
    out += line_;
  }
  line_.clear();
}

}  // namespace braid::cli
