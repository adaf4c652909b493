#include <algorithm>

#include <fmt/core.h>

#include "base/error.h"
#include "base/file.h"
#include "cli/command.h"
#include "cli/support/help.h"
#include "cli/support/options.h"

namespace braid::cli {
namespace {

CommandHelp help_of(const Command& command, const std::string& before) {
  HelpCatcher catcher;
  command.run({"--help"});
  CommandHelp help = std::move(catcher.caught);
  help.name = before + command.name;
  help.summary = command.summary;
  return help;
}

/// Of every command, an action of one as "trace stats".
std::vector<CommandHelp> all_help() {
  std::vector<CommandHelp> all;
  for (const Command& command : commands()) {
    all.push_back(help_of(command, ""));
    for (const Command& action : command.actions) all.push_back(help_of(action, command.name + std::string(" ")));
  }
  return all;
}

/// The page of the program itself.
CommandHelp overview() {
  CommandHelp help{"",
                   "plan, simulate and execute the fine-tuning of many adapters on one frozen backbone",
                   "braid COMMAND [options]\nbraid COMMAND --help\nbraid --version",
                   {}};
  for (const Command& command : commands()) help.usage += fmt::format("\n  {:12} {}", command.name, command.summary);
  return help;
}

}  // namespace

int run_completion(const std::vector<std::string>& words) {
  CommonFlags flags;
  CommandLine line(
      "braid completion bash|zsh\nprints a script that completes braid's commands and options:\n"
      "  source <(braid completion bash)",
      flags);
  std::string shell;
  line.add_positional("SHELL", shell);
  line.without_json();
  if (!line.parse(words)) return kSuccess;
  if (shell != "bash" && shell != "zsh") throw error("shell '{}' is not known; give bash or zsh", shell);
  fmt::print("{}", shell == "bash" ? bash_completion(all_help()) : zsh_completion(all_help()));
  return kSuccess;
}

int run_man(const std::vector<std::string>& words) {
  CommonFlags flags;
  CommandLine line("braid man DIR\nwrites the manual page of every command into DIR, as braid-COMMAND.1", flags);
  std::string folder;
  line.add_positional("DIR", folder);
  line.without_json();
  if (!line.parse(words)) return kSuccess;
  std::filesystem::create_directories(folder);
  const auto write = [&](const CommandHelp& help) {
    std::string name = "braid" + (help.name.empty() ? "" : "-" + help.name) + ".1";
    std::ranges::replace(name, ' ', '-');
    write_file(std::filesystem::path(folder) / name, man_page(help, BRAID_VERSION));
  };
  write(overview());
  for (const CommandHelp& help : all_help()) write(help);
  return kSuccess;
}

}  // namespace braid::cli
