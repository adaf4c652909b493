#include "workload/text/jinja/template.h"

#include <map>

#include <gtest/gtest.h>

#include "base/date.h"
#include "base/node.h"
#include "support.h"

// tests/golden/chat_templates holds templates, and what Jinja makes of them and of small ones as transformers sets it
// up (scripts/golden/make_chat_templates.py).
namespace braid::workload::jinja {
namespace {

const std::filesystem::path kTemplates = golden("chat_templates");

Fields variables_of(const Node& expected, const std::string& messages, bool prompt, bool tools) {
  return {{"bos_token", Value::text("<s>")},
          {"eos_token", Value::text("</s>")},
          {"messages", Value::of(expected.at("conversations").at(messages))},
          {"tools", tools ? Value::of(expected.at("tools")) : Value()},
          {"documents", Value()},
          {"add_generation_prompt", Value::boolean(prompt)}};
}

std::string rendered(const std::string& text, const Fields& variables = {}) {
  return Template(text, {.file = "t.jinja"}).render(variables);
}

/// The text, "raises: WORDS" or "fails", and what that was.
std::pair<std::string, std::string> outcome_of(const Template& made, const Fields& variables) {
  try {
    return {"text: " + made.render(variables), ""};
  } catch (const Raised& raised) {
    return {std::string("raises: ") + raised.what(), ""};
  } catch (const Error& failure) {
    return {"fails", failure.what()};
  }
}

std::string outcome_in(const Node& expected) {
  if (const Node* text = expected.find("text")) return "text: " + text->text;
  if (const Node* words = expected.find("raises")) return "raises: " + words->text;
  return "fails";
}

TEST(ChatTemplate, RendersWhatJinjaDoes) {
  const Node expected = read_json(kTemplates / "expected.json");
  std::map<std::string, Template> templates;
  int texts = 0;
  for (const Node& each : expected.at("cases").items) {
    const std::string name = each.string_at("template"), file = (kTemplates / (name + ".jinja")).string();
    const auto made = templates.try_emplace(name, read_file(file), Source{.file = file}).first;
    const std::string messages = each.string_at("messages");
    SCOPED_TRACE(name + " " + messages);
    const auto [outcome, reason] = outcome_of(
        made->second, variables_of(expected, messages, each.bool_or("prompt", false), each.bool_or("tools", false)));
    EXPECT_EQ(outcome, outcome_in(each)) << reason;
    texts += outcome.starts_with("text: ");
  }
  EXPECT_GT(templates.size(), 9U);
  EXPECT_GT(texts, 100);
}

TEST(ChatTemplate, SmallOnesRenderAsInJinja) {
  const Node expected = read_json(kTemplates / "expected.json");
  const Fields variables = variables_of(expected, "system", false, false);
  ASSERT_GT(expected.at("small").items.size(), 250U);
  for (const Node& each : expected.at("small").items) {
    const std::string text = each.string_at("template");
    SCOPED_TRACE(text);
    try {
      const auto [outcome, reason] = outcome_of(Template(text, {.file = "t.jinja"}), variables);
      EXPECT_EQ(outcome, outcome_in(each)) << reason;
    } catch (const Error& failure) {
      EXPECT_EQ("fails", outcome_in(each)) << failure.what();
    }
  }
}

TEST(ChatTemplate, ExpressionsAtRandomRenderAsInJinjaOrAreRefused) {
  const Node expected = read_json(kTemplates / "expected.json");
  const Fields variables = variables_of(expected, "system", false, false);
  int rendered_alike = 0, refused = 0;
  for (const Node& each : expected.at("drawn").items) {
    const std::string text = each.string_at("template");
    SCOPED_TRACE(text);
    const auto [outcome, reason] = outcome_of(Template(text, {.file = "t.jinja"}), variables);
    if (outcome == "fails" && each.find("text")) {
      ++refused;
      continue;
    }
    EXPECT_EQ(outcome, outcome_in(each)) << reason;
    rendered_alike += outcome != "fails";
  }
  EXPECT_GT(rendered_alike, 100);
  EXPECT_LT(refused, rendered_alike / 10);
}

TEST(ChatTemplate, WhatIsNotBuiltInIsRefusedByNameWhenItIsRead) {
  const std::pair<std::string, std::string> refused[] = {
      {"{{ 1 | wordwrap }}", "the filter 'wordwrap' is not built in"},
      {"{{ [1] | map('wordwrap') }}", "the filter 'wordwrap' is not built in"},
      {"{{ [1] | select('callable') }}", "the test 'callable' is not built in"},
      {"{{ [1] | selectattr('a', 'callable') }}", "the test 'callable' is not built in"},
      {"{{ 1 is callable }}", "the test 'callable' is not built in"},
      {"{{ 'a'.format(1) }}", "the method 'format' is not built in"},
      {"{{ messages.append(1) }}", "the method 'append' is not built in"},
      {"{{ lipsum() }}", "the name 'lipsum' is not built in"},
      {"{{ unheard(1) }}", "the function 'unheard' is not built in"},
      {"a\n{{ joiner() }}", "t.jinja:8: the name 'joiner' is not built in"},
      {"{% include 'x' %}", "the statement 'include' is not built in"},
      {"{% raw %}{{ }}{% endraw %}", "the statement 'raw' is not built in"},
      {"{% call m() %}{% endcall %}", "the statement 'call' is not built in"},
      {"{% for x in y recursive %}{% endfor %}", "a recursive loop is not built in"},
      {"{{ range(*a) }}", "unpacked with * are not built in"},
      {"{% set range = 1 %}", "a value for 'range' is not built in"},
      {"{{ (a | safe) ~ b }}", "the filter 'safe' is not built in but"},
      {"{{ a.__class__ }}", "the attribute '__class__' is not built in"},
      {"{{ 0x10 }}", "the number '0x' is not built in"},
      {"{{ '\\N{DASH}' }}", "an escape in a string is not built in"},
  };
  for (const auto& [text, words] : refused) {
    SCOPED_TRACE(text);
    expect_error([&] { Template(text, {.file = "t.jinja", .line = 7}); }, "t.jinja:", words, "scripts/pretokenize.py");
  }
}

TEST(ChatTemplate, TheDateIsTodays) {
  const std::string day = date_text("%d %b %Y");
  EXPECT_EQ(Template("{% if strftime_now is defined %}{% set day = strftime_now('%d %b %Y') %}{% endif %}on {{ day }}",
                     {.file = "t.jinja"})
                .render({}),
            "on " + day);
}

TEST(ChatTemplate, WhatIsNoJinjaIsRefusedWithItsLine) {
  const std::pair<std::string, std::string> broken[] = {
      {"a\n{{ 1", "t.jinja:2: {{ has no end }}"},
      {"{% if 1 %}\n", "t.jinja:1: 'endif' is missing"},
      {"{% for x in %}{% endfor %}", "t.jinja:1: the expression or statement ends too early"},
      {"\n\n{% endfor %}", "t.jinja:3: the statement 'endfor'"},
      {"{{ 1 + }}", "ends too early"},
      {"{{ (1 }}", "'}' closes nothing"},
      {"{{ 'a }}", "a string has no end"},
      {"{{ a b }}", "'b' is unexpected"},
      {"{{ $ }}", "'$' is no part of an expression"},
      {"{# c", "a comment {# has no end #}"},
      {"{% break %}", "'break' outside a loop"},
      {"{% for x in y %}{% macro m() %}{% break %}{% endmacro %}{% endfor %}", "'break' outside a loop"},
      {"{{ '\\ud800' }}", "an escape in a string is no character"},
      {"{{ 99999999999999999999 }}", "is too large"},
      {"{{ f(a=1, 2) }}", "an argument without a name follows one with a name"},
      {"a\n\xFF", "t.jinja:2: the chat template is not UTF-8"},
  };
  for (const auto& [text, words] : broken) {
    SCOPED_TRACE(text);
    expect_error([&] { Template(text, {.file = "t.jinja"}); }, words);
  }
}

TEST(ChatTemplate, EveryTemplateThatIsCutShortIsReadOrRefused) {
  for (const auto& entry : std::filesystem::directory_iterator(kTemplates)) {
    if (entry.path().extension() != ".jinja") continue;
    const std::string text = read_file(entry.path());
    for (std::size_t length = 0; length < text.size(); length += 3) {
      for (const std::string& spoilt : {text.substr(0, length), text.substr(length)}) {
        try {
          Template(spoilt, {.file = "t.jinja"}).render({});
        } catch (const Error& failure) {
          EXPECT_FALSE(contains(failure.what(), "\n"));
        }
      }
    }
  }
}

std::string repeated(int times, const std::string& text) {
  std::string all;
  for (int i = 0; i < times; ++i) all += text;
  return all;
}

TEST(ChatTemplate, NoneRunsOrGrowsWithoutEnd) {
  constexpr int kMany = 5000;
  const std::vector<std::string> texts = {
      "{% for a in range(100000) %}{% for b in range(100000) %}{% endfor %}{% endfor %}",
      "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
      "{% set ns = namespace(s='ab') %}{% for i in range(60) %}{% set ns.s = ns.s ~ ns.s %}{% endfor %}",
      "{% set ns = namespace(s='ab') %}{% for i in range(60) %}{% set ns.s = ns.s.replace('a', 'aa') %}{% endfor %}",
      "{% set ns = namespace(s=[1]) %}{% for i in range(60) %}{% set ns.s = ns.s + ns.s %}{% endfor %}",
      "{% set ns = namespace(s=[1]) %}{% for i in range(100000) %}{% set ns.s = [ns.s] %}{% endfor %}",
      "{{ 'ab' * 99999999999 }}",
      "{{ [1] * 99999999999 }}",
      "{{ 2 ** 99999999 }}",
      "{% set ns = namespace() %}{% set ns.self = ns %}",
      "{{ " + repeated(kMany, "(") + "1" + repeated(kMany, ")") + " }}",
      "{{ " + repeated(kMany, "[") + repeated(kMany, "]") + " }}",
      "{{ 1" + repeated(kMany, "+1") + " }}",
      "{{ a" + repeated(kMany, "|trim") + " }}",
      "{{ a" + repeated(kMany, ".b") + " }}",
      "{{ " + repeated(kMany, "not ") + "a }}",
      "{{ " + repeated(kMany, "1 if 1 else ") + "a }}",
      repeated(kMany, "{% if 1 %}"),
      "{% if 1 %}" + repeated(kMany, "{% elif 1 %}") + "{% endif %}",
  };
  for (const std::string& text : texts) {
    SCOPED_TRACE(text.substr(0, 60));
    expect_error([&] { rendered(text); }, "");
  }
}

TEST(ChatTemplate, WhatCannotBeRenderedTellsWhere) {
  EXPECT_EQ(error_of([] { rendered("a\n\n{{ missing.a }}"); }), "'missing' is undefined (t.jinja:3)");
  EXPECT_EQ(error_of([] { Template("a\n{{ 1 + 'a' }}", {.file = "c.json", .line = 5, .one_line = true}).render({}); }),
            "a number + a string (c.json:5: line 2 of the chat template)");
  for (const char* other : {"{{ '\u00e9' | upper }}", "{{ ['\u00e9'] }}", "{{ {}.keys() }}", "{{ range(2) }}"})
    expect_error([&] { rendered(other); }, "(t.jinja:1)");
}

}  // namespace
}  // namespace braid::workload::jinja
