#include "cli/support/help.h"

#include <algorithm>
#include <sstream>

#include <fmt/core.h>

namespace braid::cli {
namespace {

/// Lines of at most so many columns, broken at blanks. A line break of the text stays one.
std::vector<std::string> wrapped(const std::string& text, std::size_t columns) {
  std::vector<std::string> lines;
  std::istringstream paragraphs(text);
  for (std::string paragraph; std::getline(paragraphs, paragraph);) {
    std::istringstream words(paragraph);
    std::string line;
    for (std::string word; words >> word;) {
      if (!line.empty() && line.size() + 1 + word.size() > columns) lines.push_back(std::exchange(line, ""));
      line += (line.empty() ? "" : " ") + word;
    }
    lines.push_back(line);
  }
  return lines;
}

std::string flag(const OptionHelp& option) {
  return "--" + option.name + (option.argument.empty() ? "" : " " + option.argument);
}

std::string told(const OptionHelp& option) {
  return option.text + (option.otherwise.empty() ? "" : fmt::format(" [{}]", option.otherwise));
}

/// A dash as it is typed, and no line that begins with a request.
std::string roff(const std::string& text) {
  std::string safe;
  for (const char c : text) {
    if (c == '-') {
      safe += "\\-";
    } else if (c == '\\') {
      safe += "\\e";
    } else if ((c == '.' || c == '\'') && (safe.empty() || safe.back() == '\n')) {
      safe += std::string("\\&") + c;
    } else {
      safe += c;
    }
  }
  return safe;
}

/// Within single quotes of a shell.
std::string shell_word(const std::string& text) {
  std::string safe = "'";
  for (const char c : text) safe += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return safe + "'";
}

bool takes_file(const OptionHelp& option) {
  return option.argument == "FILE" || option.argument == "DIR";
}

}  // namespace

std::string help_text(const CommandHelp& help, bool all, std::size_t columns) {
  std::string text = "usage: " + help.usage + "\n";
  if (help.options.empty()) return text;
  text += "\n";
  std::size_t width = 0;
  for (const OptionHelp& option : help.options)
    if (all || option.first) width = std::max(width, flag(option).size());
  constexpr std::size_t kWidest = 26, kLeast = 40;
  width = std::min(width, kWidest);
  const std::size_t room = std::max(kLeast, columns > width + 5 ? columns - width - 5 : 0);
  for (const OptionHelp& option : help.options) {
    if (!all && !option.first) continue;
    std::string name = flag(option);
    for (const std::string& line : wrapped(told(option), room)) {
      text += fmt::format("  {:{}}{} {}\n", name, width, name.size() > width ? "\n" + std::string(width + 2, ' ') : "",
                          line);
      name.clear();
    }
  }
  const auto hidden = std::ranges::count(help.options, false, &OptionHelp::first);
  if (!all && hidden > 0) text += fmt::format("\n{} more options: braid {} --help-all\n", hidden, help.name);
  return text;
}

std::string man_page(const CommandHelp& help, const std::string& version) {
  std::string title = "braid" + (help.name.empty() ? "" : "-" + help.name);
  std::ranges::replace(title, ' ', '-');
  std::string page = fmt::format(".TH \"{}\" 1 \"\" \"braid {}\" \"braid\"\n.SH NAME\n{} \\- {}\n", title, version,
                                 roff(title), roff(help.summary));
  page += ".SH SYNOPSIS\n.nf\n" + roff(help.usage) + "\n.fi\n";
  if (!help.options.empty()) page += ".SH OPTIONS\n";
  for (const OptionHelp& option : help.options) {
    page += fmt::format(".TP\n.B \\-\\-{}{}\n", roff(option.name),
                        option.argument.empty() ? "" : fmt::format(" \\fI{}\\fR", roff(option.argument)));
    for (const std::string& line : wrapped(told(option), 100)) page += roff(line) + "\n.br\n";
  }
  return page + ".SH SEE ALSO\nThe pages of all commands are listed by\n.BR \"braid \\-\\-help\" .\n";
}

std::string bash_completion(std::span<const CommandHelp> commands) {
  std::string script =
      "# bash completion of braid\n_braid() {\n  local word=\"${COMP_WORDS[COMP_CWORD]}\" "
      "before=\"${COMP_WORDS[COMP_CWORD-1]}\"\n"
      "  local command=\"${COMP_WORDS[1]}\"\n  COMPREPLY=()\n  if ((COMP_CWORD == 1)); then\n    COMPREPLY=($(compgen "
      "-W \"";
  std::vector<std::string> names;
  for (const CommandHelp& command : commands) {
    std::string name = command.name.substr(0, command.name.find(' '));
    if (std::ranges::find(names, name) == names.end()) names.push_back(std::move(name));
  }
  for (const std::string& name : names) script += name + " ";
  script += "\" -- \"$word\"))\n    return\n  fi\n  case \"$command\" in\n";
  for (const std::string& name : names) {
    std::string options, actions, files;
    for (const CommandHelp& command : commands) {
      if (command.name != name && !command.name.starts_with(name + " ")) continue;
      if (command.name.size() > name.size()) actions += command.name.substr(name.size() + 1) + " ";
      for (const OptionHelp& option : command.options) {
        const std::string word = "--" + option.name;
        if (options.find(word + " ") == std::string::npos) options += word + " ";
        if (takes_file(option) && files.find(word + "|") == std::string::npos) files += word + "|";
      }
    }
    script += fmt::format("    {})\n", name);
    if (!files.empty())
      script += fmt::format("      case \"$before\" in {}) COMPREPLY=($(compgen -f -- \"$word\")); return ;; esac\n",
                            files.substr(0, files.size() - 1));
    script += fmt::format("      if [[ $word == -* ]]; then COMPREPLY=($(compgen -W \"{}\" -- \"$word\"))\n", options);
    if (!actions.empty())
      script +=
          fmt::format("      elif ((COMP_CWORD == 2)); then COMPREPLY=($(compgen -W \"{}\" -- \"$word\"))\n", actions);
    script += "      else COMPREPLY=($(compgen -f -- \"$word\")); fi ;;\n";
  }
  return script + "  esac\n}\ncomplete -o filenames -F _braid braid\n";
}

std::string zsh_completion(std::span<const CommandHelp> commands) {
  const auto plain = [](std::string text) {  // what _arguments reads as its own is left out
    std::erase_if(text, [](char c) { return c == '[' || c == ']' || c == ':' || c == '\n'; });
    return text;
  };
  std::string script = "#compdef braid\n_braid() {\n  local -a commands\n  commands=(\n";
  for (const CommandHelp& command : commands)
    if (command.name.find(' ') == std::string::npos)
      script += fmt::format("    {}\n", shell_word(command.name + ":" + plain(command.summary)));
  script += "  )\n  if ((CURRENT == 2)); then _describe command commands; return; fi\n  case \"$words[2]\" in\n";
  for (const CommandHelp& command : commands) {
    if (command.name.find(' ') != std::string::npos) continue;
    script += fmt::format("    {})\n      _arguments", command.name);
    for (const OptionHelp& option : command.options) {
      std::string word = fmt::format("--{}[{}]", option.name, plain(option.text.substr(0, option.text.find('\n'))));
      if (!option.argument.empty())
        word += fmt::format(":{}:{}", plain(option.argument), takes_file(option) ? "_files" : "");
      script += " \\\n        " + shell_word(word);
    }
    script += " \\\n        '*:file:_files' ;;\n";
  }
  return script + "  esac\n}\n_braid \"$@\"\n";
}

}  // namespace braid::cli
