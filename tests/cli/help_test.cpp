#include "cli/support/help.h"

#include <algorithm>
#include <sstream>

#include <gtest/gtest.h>

#include "base/node.h"
#include "cli/workspace.h"

namespace braid::cli {
namespace {

using testing::Outcome;
using testing::read_text;
using testing::run_braid;

constexpr const char* kCommands[] = {
    "init",   "import",  "profile", "plan",     "compare",    "simulate", "train",     "status",     "task", "validate",
    "report", "cluster", "trace",   "policies", "schedulers", "gpus",     "backbones", "completion", "man"};

std::string told(const std::string& words) {
  const Outcome outcome = run_braid(words);
  EXPECT_EQ(outcome.status, 0) << words << ": " << outcome.text;
  return outcome.text;
}

std::ptrdiff_t lines(const std::string& text) {
  return std::ranges::count(text, '\n');
}

TEST(Help, FitsAScreen) {
  for (const std::string command : kCommands) {
    const std::string text = told(command + " --help"), all = told(command + " --help-all");
    EXPECT_TRUE(text.starts_with("usage: braid " + command)) << text;
    EXPECT_LE(lines(text), 40) << command;
    std::istringstream each(text);
    for (std::string line; std::getline(each, line);) EXPECT_LE(line.size(), 130U) << command << ": " << line;
    EXPECT_EQ(text.find("more options: braid " + command + " --help-all\n") != std::string::npos, all != text)
        << command;
    EXPECT_NE(told("--help").find("\n  " + command + " "), std::string::npos) << command;
  }
  EXPECT_EQ(told("plan --help").find("--dump-model"), std::string::npos);
  EXPECT_NE(told("plan --help-all").find("--dump-model DIR"), std::string::npos);
  EXPECT_NE(told("plan -h").find("usage: braid plan"), std::string::npos);
}

TEST(Help, OfAnOptionNameValueAndDefault) {
  const CommandHelp help{"do",
                         "does",
                         "braid do [options]",
                         {{"out", "FILE", "x.json", "where it goes"}, {"rare", "", "", "seldom asked for", false}}};
  EXPECT_EQ(
      help_text(help, false, 80),
      "usage: braid do [options]\n\n  --out FILE where it goes [x.json]\n\n1 more options: braid do --help-all\n");
  EXPECT_EQ(help_text(help, true, 80),
            "usage: braid do [options]\n\n  --out FILE where it goes [x.json]\n  --rare     seldom asked for\n");
  const std::string page = man_page({"do", ".summary", "braid do", {{"a-b", "", "", "'quoted' \\ .text"}}}, "1.2");
  EXPECT_NE(page.find("\n.B \\-\\-a\\-b\n"), std::string::npos) << page;
  EXPECT_NE(page.find("\n\\&'quoted' \\e .text\n"), std::string::npos) << page;
}

TEST(Help, WhatCanBeNamedIsListed) {
  for (const auto& [words, name] : {std::pair("policies", "muxtune"),
                                    {"schedulers", "srtf"},
                                    {"gpus", "a40"},
                                    {"backbones", "llama2-7b"},
                                    {"trace formats", "philly-json"}}) {
    EXPECT_NE(told(words).find(name), std::string::npos) << words;
    const Node list = parse_json(told(std::string(words) + " --json"), words);
    EXPECT_TRUE(std::ranges::any_of(list.sequence("list"), [n = name](const Node& one) {
      return one.fields.front().second.text == n;
    })) << words;
  }
  EXPECT_NE(told("policies muxtune").find("\n  chunk "), std::string::npos);
  EXPECT_TRUE(parse_json(told("policies muxtune --json"), "policy").at("options").find("alignment"));
  const Outcome unknown = run_braid("policies muxtun");
  EXPECT_EQ(unknown.status, 2);
  EXPECT_NE(unknown.text.find("muxtune"), std::string::npos) << unknown.text;
}

TEST(Completion, KnowsCommandsActionsAndOptions) {
  const auto completed = [](const std::string& words, int at) {
    return testing::run_shell("bash -c 'source <(" BRAID_PROGRAM " completion bash); COMP_WORDS=(" + words +
                              "); COMP_CWORD=" + std::to_string(at) + "; _braid; echo ${COMPREPLY[@]}'")
        .text;
  };
  EXPECT_EQ(completed("braid tra", 1), "train trace\n");
  EXPECT_EQ(completed("braid trace ge", 2), "generate\n");
  EXPECT_EQ(completed("braid plan --tp", 2), "--tp\n");
  EXPECT_EQ(completed("braid plan --dump", 2), "--dump-model\n") << "what --help leaves out, too";
  EXPECT_EQ(run_braid("completion fish").status, 2);
  const std::string zsh = told("completion zsh");
  EXPECT_TRUE(zsh.starts_with("#compdef braid\n"));
  EXPECT_NE(zsh.find("'--plan["), std::string::npos);
}

class Manual : public testing::Workspace {};

TEST_F(Manual, HasAPageForEveryCommandWithAllOptions) {
  told("man " + path("man"));
  EXPECT_NE(read_text(folder / "man/braid.1").find(".TH \"braid\" 1"), std::string::npos);
  EXPECT_TRUE(std::filesystem::exists(folder / "man/braid-trace-generate.1"));
  for (const std::string command : kCommands) {
    const std::string page = read_text(folder / ("man/braid-" + command + ".1"));
    std::istringstream words(told(command + " --help-all"));
    for (std::string word; words >> word;) {
      if (!word.starts_with("--") || word == "--help-all") continue;
      std::string dashed;
      for (const char c : word) dashed += c == '-' ? std::string("\\-") : std::string(1, c);
      EXPECT_NE(page.find(dashed.substr(0, dashed.find_first_of(".,;:)]"))), std::string::npos)
          << command << ": " << word;
    }
  }
}

}  // namespace
}  // namespace braid::cli
