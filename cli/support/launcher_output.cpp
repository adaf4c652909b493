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

/// "mpirun: ..." or "[host:1234] ...", as Open MPI's daemons and libraries write.
bool is_own(std::string_view line) {
  if (line.starts_with(kOwnWords)) return true;
  if (!line.starts_with('[')) return false;
  const std::string_view place = line.substr(1, line.find(']') - 1);
  const std::size_t colon = place.rfind(':');
  return line.find("] ") != std::string_view::npos && colon != std::string_view::npos && colon + 1 < place.size() &&
         place.find_first_not_of("0123456789", colon + 1) == std::string_view::npos;
}

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
  const bool may_be_own = is_own(line_) || kOwnWords.starts_with(line_) || line_.starts_with('[');
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
  } else if (!is_own(line_)) {
    out += line_;
  }
  line_.clear();
}

}  // namespace braid::cli
