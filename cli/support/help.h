#pragma once

#include <span>
#include <string>
#include <vector>

namespace braid::cli {

struct OptionHelp {
  std::string name;       ///< without the dashes
  std::string argument;   ///< "FILE", "N"; empty: it is a switch
  std::string otherwise;  ///< its value where it is left out; empty: none, or what `text` says
  std::string text;
  bool first = true;  ///< among those that --help shows
};

/// What a command says of itself: the one source of --help, manual pages and completions.
struct CommandHelp {
  std::string name = {};     ///< "train", "trace stats"
  std::string summary = {};  ///< in a line
  std::string usage = {};    ///< the words after "usage: ", and below it what they mean
  std::vector<OptionHelp> options = {};
};

/// For a terminal of so many columns. With `all` no option is left out.
std::string help_text(const CommandHelp& help, bool all, std::size_t columns);
/// In the format of man(7), for section 1.
std::string man_page(const CommandHelp& help, const std::string& version);
/// A script for bash's or zsh's completion of braid's words.
std::string bash_completion(std::span<const CommandHelp> commands);
std::string zsh_completion(std::span<const CommandHelp> commands);

/// While it lives, commands that are asked for --help tell it in place of the terminal.
class HelpCatcher {
 public:
  HelpCatcher() { active_ = this; }
  ~HelpCatcher() { active_ = nullptr; }
  HelpCatcher(const HelpCatcher&) = delete;
  HelpCatcher& operator=(const HelpCatcher&) = delete;

  static HelpCatcher* active() { return active_; }
  CommandHelp caught;

 private:
  static inline HelpCatcher* active_ = nullptr;
};

}  // namespace braid::cli
