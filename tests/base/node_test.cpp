#include "base/node.h"

#include <string>

#include "support.h"

namespace braid {
namespace {

Node yaml(const std::string& text) {
  return parse_yaml(text, "w.yaml");
}

Node json(const std::string& text, int first_line = 1) {
  return parse_json(text, "d.jsonl", first_line);
}

/// Same kinds, texts and fields; lines and quotes aside.
void expect_alike(const Node& a, const Node& b) {
  ASSERT_EQ(a.kind, b.kind);
  EXPECT_EQ(a.text, b.text);
  ASSERT_EQ(a.items.size(), b.items.size());
  for (std::size_t i = 0; i < a.items.size(); ++i) expect_alike(a.items[i], b.items[i]);
  ASSERT_EQ(a.fields.size(), b.fields.size());
  for (std::size_t i = 0; i < a.fields.size(); ++i) {
    EXPECT_EQ(a.fields[i].first, b.fields[i].first);
    expect_alike(a.fields[i].second, b.fields[i].second);
  }
}

TEST(Node, YamlReadsJsonAsJsonDoes) {
  const std::string text = R"({"b": [1, -2.5, "three", true, null], "a": {"c": {}, "d": []}, "é": "\"ü\" → \\"})";
  expect_alike(yaml(text), json(text));
}

TEST(Node, FieldsKeepTheOrderOfTheFile) {
  for (const Node& node : {yaml("z: 1\na: 2\nm: 3"), json(R"({"z": 1, "a": 2, "m": 3})")}) {
    ASSERT_EQ(node.fields.size(), 3U);
    EXPECT_EQ(node.fields[0].first, "z");
    EXPECT_EQ(node.fields[1].first, "a");
    EXPECT_EQ(node.fields[2].first, "m");
  }
}

TEST(Node, EveryValueKnowsItsLine) {
  const Node in_yaml = yaml("a: 1\nb:\n  c: x\n  d: [1,\n      2]\n\n# note\ne:\n  - p\n  - q: 1\n");
  EXPECT_EQ(in_yaml.at("a").line, 1);
  EXPECT_EQ(in_yaml.at("b").at("c").line, 3);
  EXPECT_EQ(in_yaml.at("b").at("d").items[1].line, 5);
  EXPECT_EQ(in_yaml.at("e").items[0].line, 9);
  EXPECT_EQ(in_yaml.at("e").items[1].at("q").line, 10);

  const Node in_json = json("{\n \"a\": 1,\n \"b\": {\n  \"c\": \"x\"\n },\n \"e\": [\n  \"p\",\n  {\"q\": 1}]}");
  EXPECT_EQ(in_json.at("a").line, 2);
  EXPECT_EQ(in_json.at("b").line, 3);
  EXPECT_EQ(in_json.at("b").at("c").line, 4);
  EXPECT_EQ(in_json.at("e").items[0].line, 7);
  EXPECT_EQ(in_json.at("e").items[1].at("q").line, 8);
}

TEST(Node, JsonLinesAreCountedFromWhereTheyStand) {
  EXPECT_EQ(json(R"({"text": "x"})", 17).at("text").line, 17);
  expect_error([] { json("{\"text\": }", 17); }, "d.jsonl:17: not valid JSON", "; ");
}

TEST(Node, ErrorsSayFileLineWhatAndRemedy) {
  const Node node = yaml("a: 1\nb: -3\n");
  EXPECT_EQ(error_of([&] { node.integer_at("b", 0); }), "w.yaml:2: 'b' is '-3'; give b >= 0");
  EXPECT_EQ(error_of([&] { node.at("c"); }), "w.yaml:1: 'c' is missing; add 'c'");
}

TEST(Node, OnlyBareWordsAreNumbersAndBooleans) {
  for (const Node& node : {yaml("n: 5\nx: 2.5e-1\nt: true\nq: '5'\nu: \"true\""),
                           json(R"({"n": 5, "x": 2.5e-1, "t": true, "q": "5", "u": "true"})")}) {
    EXPECT_EQ(node.integer_at("n"), 5);
    EXPECT_EQ(node.number_at("n"), 5.0);
    EXPECT_EQ(node.number_at("x"), 0.25);
    EXPECT_TRUE(node.bool_or("t", false));
    EXPECT_EQ(node.string_at("q"), "5");
    expect_error([&] { node.integer_at("q"); }, "'q' is '5'", "a whole number");
    expect_error([&] { node.number_at("q"); }, "'q' is '5'", "a number");
    expect_error([&] { node.bool_or("u", true); }, "give true or false");
  }
}

TEST(Node, NumbersThatAreNotOneAreRefused) {
  for (const char* text : {"1.0", "1e3", "0x10", "1 2", "abc", "9223372036854775808", "[1]", "{a: 1}", "~", "1_000"}) {
    const Node node = yaml(fmt::format("n: {}", text));
    expect_error([&] { node.integer_at("n"); }, "w.yaml:1: 'n' is ", "a whole number");
  }
  for (const char* text : {".nan", ".inf", "nan", "inf", "-inf", "1e999", "1.2.3", "2e", "true", "[]"}) {
    const Node node = yaml(fmt::format("n: {}", text));
    expect_error([&] { node.number_at("n"); }, "w.yaml:1: 'n' is ", "a number");
  }
  EXPECT_EQ(yaml("n: 9223372036854775807").integer_at("n"), INT64_MAX);
  EXPECT_EQ(yaml("n: -9223372036854775808").integer_at("n"), INT64_MIN);
}

TEST(Node, RangesAreInclusiveAndTheMessageTellsThem) {
  const Node node = yaml("n: 5");
  EXPECT_EQ(node.integer_at("n", 5, 5), 5);
  EXPECT_EQ(node.number_at("n", 5, 5), 5.0);
  expect_error([&] { node.integer_at("n", 6); }, "give n >= 6");
  expect_error([&] { node.integer_at("n", INT64_MIN, 4); }, "give n <= 4");
  expect_error([&] { node.integer_at("n", 6, 9); }, "give a whole number in 6..9");
  expect_error([&] { node.number_at("n", 5.5, 9); }, "give a number in 5.5..9");
  expect_error([&] { node.number_at("n", 5.5); }, "give n >= 5.5");
}

TEST(Node, AbsentAndNullFieldsTakeTheDefault) {
  for (const Node& node : {yaml("a: ~\nb:\nc: null"), json(R"({"a": null, "b": null, "c": null})")}) {
    for (const char* key : {"a", "b", "c", "d"}) {
      EXPECT_EQ(node.integer_or(key, 7), 7);
      EXPECT_EQ(node.number_or(key, 0.5), 0.5);
      EXPECT_EQ(node.string_or(key, "x"), "x");
      EXPECT_TRUE(node.bool_or(key, true));
    }
    EXPECT_EQ(node.find("d"), nullptr);
    EXPECT_TRUE(node.find("a")->is_null());
  }
  expect_error([] { yaml("a: word").integer_or("a", 7); }, "'a' is 'word'");
}

TEST(Node, AMessageStaysOnOneLine) {
  expect_error([] { json(R"({"n": "a\nb\rc\u0000"})").integer_at("n"); }, "'n' is 'a b c '");
  expect_error([] { yaml("\"a\\nb\": 1").allow_only({"a"}); }, "unknown key 'a b'");
}

TEST(Node, UnknownKeysAreNamedWithThoseThatAre) {
  const Node node = yaml("name: x\nlearning_rate: 1");
  node.allow_only({"name", "learning_rate"});
  EXPECT_EQ(error_of([&] {
              node.allow_only({"name", "lr"});
            }),
            "w.yaml:2: unknown key 'learning_rate'; valid keys: name, lr");
  expect_error([&] { yaml("- a").allow_only({"a", "b"}); }, "a list stands where keys are expected", "a, b");
}

TEST(Node, AKeyGivenTwiceIsAnError) {
  EXPECT_EQ(error_of([] { yaml("a: 1\nb: 2\na: 3"); }), "w.yaml:3: key 'a' is given twice; keep one");
  EXPECT_EQ(error_of([] { json("{\"a\": 1,\n\"a\": 1}"); }), "d.jsonl:2: key 'a' is given twice; keep one");
  expect_error([] { yaml("t: {x: {r: 1, r: 2}}"); }, "key 'r' is given twice");
  EXPECT_EQ(json(R"({"a": {"a": 1}, "b": {"a": 2}})").at("b").integer_at("a"), 2);
}

TEST(Node, KindsAreToldApart) {
  const Node node = yaml("s: x\nl: [1]\nm: {a: 1}");
  expect_error([&] { node.at("s").sequence("s"); }, "'s' is 'x'", "give a list");
  expect_error([&] { node.string_at("l"); }, "'l' is a list", "give a string");
  expect_error([&] { node.string_at("m"); }, "'m' is a map", "give a string");
  expect_error([&] { node.at("s").find("a"); }, "'x' stands where keys are expected", "give a map with 'a'");
  EXPECT_EQ(node.at("l").sequence("l").size(), 1U);
}

TEST(Node, SyntaxErrorsSayWhere) {
  for (const char* text : {"a: [1, 2", "a: 'x", "a: b: c", "\ta: 1", "{a: 1"}) {
    expect_error([&] { yaml(text); }, "w.yaml:", "not valid YAML", "mend the syntax");
  }
  expect_error([] { yaml("a: 1\nb: [\nc: 2"); }, "w.yaml:");
  expect_error([] { yaml("[1, 2]: x"); }, "w.yaml:1: a key is not a plain word");
  for (const char* text : {"", "{", "[1,]", "{\"a\" 1}", "{'a': 1}", "nan", "1 2", "\"\xFF\"", "{\"a\": 1}}", "tru"}) {
    expect_error([&] { json(text); }, "d.jsonl:1: not valid JSON", "mend the syntax");
  }
  expect_error([] { json("{\n\n\"a\": x}"); }, "d.jsonl:3: ");
}

TEST(Node, NumbersOfJsonKeepTheirText) {
  EXPECT_EQ(json("[1e-05]").items[0].text, "1e-05");
  EXPECT_EQ(json("[0.1]").items[0].as_number("x"), 0.1);
  EXPECT_EQ(json("[18446744073709551615]").items[0].text, "18446744073709551615");
}

TEST(Node, EmptyFilesAreNull) {
  EXPECT_TRUE(yaml("").is_null());
  EXPECT_TRUE(yaml("# only a note\n").is_null());
  EXPECT_EQ(yaml("").find("a"), nullptr);
}

TEST(Node, DeepNestingIsRefused) {
  const std::string deep = std::string(200000, '[') + std::string(200000, ']');
  expect_error([&] { json(deep); }, "d.jsonl:1: ");
  EXPECT_EQ(json("[[[[[[[[[[7]]]]]]]]]]").items[0].items[0].items[0].items.size(), 1U);
}

TEST(Node, FilesAreReadAsText) {
  const TestFolder folder;
  EXPECT_EQ(read_yaml(folder.write("a.yaml", "a: 1")).integer_at("a"), 1);
  EXPECT_EQ(read_json(folder.write("a.json", "{\"a\": 1}")).integer_at("a"), 1);
  expect_error([&] { read_yaml(folder / "no.yaml"); }, (folder / "no.yaml").string(), "; ");
  expect_error([&] { read_json(folder.write("b.json", "{")); }, (folder / "b.json").string() + ":1: ");
}

}  // namespace
}  // namespace braid
