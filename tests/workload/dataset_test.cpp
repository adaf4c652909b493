#include "workload/dataset.h"

#include <gtest/gtest.h>

#include "texts.h"

namespace braid::workload {
namespace {

constexpr std::int32_t kBos = 256;
constexpr std::int32_t kEos = 257;

class DatasetFile : public testing::Test {
 protected:
  DatasetFile() : tokenizer(byte_tokenizer()), backbone(costmodel::builtin_backbone("tinyllama-1.1b")) {
    task.name = "t";
    task.max_length = 32;
  }

  Dataset load(const std::string& text) {
    return load_dataset(folder.write("data.jsonl", text), task, *tokenizer, backbone);
  }

  std::string complaint(const std::string& text) {
    const std::string message = error_of([&] { load(text); });
    const std::string prefix = folder.path().string() + "/";
    return message.starts_with(prefix) ? message.substr(prefix.size()) : message;
  }

  TestFolder folder;
  Task task;
  std::unique_ptr<Tokenizer> tokenizer;
  costmodel::BackboneShape backbone;
};

Sample sample(std::vector<std::int32_t> tokens, std::vector<std::int32_t> labels) {
  return {std::move(tokens), std::move(labels)};
}

TEST_F(DatasetFile, InputIdsAreTakenAsTheyStand) {
  const Dataset dataset = load(
      "{\"input_ids\": [5, 6, 7], \"labels\": [-100, -100, 7]}\n"
      "{\"input_ids\": [5, 6]}\n");
  ASSERT_EQ(dataset.samples.size(), 2u);
  EXPECT_EQ(dataset.samples[0], sample({5, 6, 7}, {-100, -100, 7}));
  EXPECT_EQ(dataset.samples[1], sample({5, 6}, {5, 6}));
  EXPECT_EQ(sample_sizes(dataset), (std::vector<SampleSize>{{3, 1}, {2, 1}}));
}

TEST_F(DatasetFile, TextIsFramedByBosAndEosAndSupervised) {
  const Dataset dataset = load("{\"text\": \"h\\u00e9\"}");
  EXPECT_EQ(dataset.samples.at(0), sample({kBos, 'h', 0xC3, 0xA9, kEos}, {kBos, 'h', 0xC3, 0xA9, kEos}));
  EXPECT_EQ(sample_sizes(dataset), (std::vector<SampleSize>{{5, 4}}));
}

TEST_F(DatasetFile, OnlyTheCompletionIsSupervised) {
  const Dataset dataset =
      load("{\"prompt\": \"ab\", \"completion\": \"cd\"}\n{\"prompt\": \"\", \"completion\": \"e\"}");
  EXPECT_EQ(dataset.samples.at(0), sample({kBos, 'a', 'b', 'c', 'd', kEos}, {-100, -100, -100, 'c', 'd', kEos}));
  EXPECT_EQ(dataset.samples.at(1), sample({kBos, 'e', kEos}, {-100, 'e', kEos}));
}

TEST_F(DatasetFile, ABackboneWithoutBosGetsNone) {
  tokenizer = make_byte_tokenizer(folder.write("t.json", R"({"type": "byte", "bos": 256, "add_bos": false})"));
  EXPECT_EQ(load("{\"text\": \"ab\"}").samples.at(0), sample({'a', 'b'}, {'a', 'b'}));
  EXPECT_EQ(load("{\"prompt\": \"a\", \"completion\": \"b\"}").samples.at(0), sample({'a', 'b'}, {-100, 'b'}));
}

TEST_F(DatasetFile, MessagesTakeTheChatLayout) {
  const Dataset dataset =
      load(R"({"messages": [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}]})");
  const std::vector<std::int32_t> tokens = {258, 'u', 's', 'e', 'r', '\n', 'q', 259,  '\n', 258, 'a', 's',
                                            's', 'i', 's', 't', 'a', 'n',  't', '\n', 'a',  259, '\n'};
  std::vector<std::int32_t> labels(tokens.size(), -100);
  labels[labels.size() - 3] = 'a';
  labels[labels.size() - 2] = 259;
  EXPECT_EQ(dataset.samples.at(0), sample(tokens, labels));
}

TEST_F(DatasetFile, KindsMayAlternateAndBlankLinesAreSkipped) {
  const Dataset dataset = load("\n{\"text\": \"ab\"}\r\n   \n\n{\"input_ids\": [1, 2]}\n\n");
  EXPECT_EQ(dataset.samples.size(), 2u);
  EXPECT_TRUE(complaint("\n{\"text\": \"ab\"}\n\n{\"input_ids\": [1]}\n").starts_with("data.jsonl:4: "));
}

TEST_F(DatasetFile, TooLongIsAnErrorUnlessCutOrDropped) {
  task.max_length = 4;
  const std::string text =
      "{\"input_ids\": [1, 2, 3, 4]}\n{\"input_ids\": [1, 2, 3, 4, 5]}\n{\"input_ids\": [1, 2, 3, 4, 5, 6]}\n";
  EXPECT_EQ(complaint(text),
            "data.jsonl:2: the sample has 5 tokens, max_length is 4; shorten it, raise max_length, or set on_too_long "
            "to truncate or drop");

  task.on_too_long = OnTooLong::truncate;
  const Dataset cut = load(text);
  ASSERT_EQ(cut.samples.size(), 3u);
  EXPECT_EQ(cut.samples[2], sample({1, 2, 3, 4}, {1, 2, 3, 4}));
  EXPECT_EQ(cut.truncated, 2);
  EXPECT_EQ(cut.dropped, 0);

  task.on_too_long = OnTooLong::drop;
  const Dataset kept = load(text);
  EXPECT_EQ(kept.samples.size(), 1u);
  EXPECT_EQ(kept.truncated, 0);
  EXPECT_EQ(kept.dropped, 2);
}

TEST_F(DatasetFile, CuttingMustLeaveSomethingSupervised) {
  task.max_length = 3;
  task.on_too_long = OnTooLong::truncate;
  EXPECT_EQ(complaint(R"({"prompt": "abcd", "completion": "e"})"),
            "data.jsonl:1: no supervised token is left in the first 3; raise max_length or set on_too_long to drop");
}

TEST_F(DatasetFile, AnEmptyDatasetIsAnError) {
  EXPECT_EQ(complaint(""), "data.jsonl:1: the dataset is empty; give at least one sample");
  EXPECT_EQ(complaint("\n\n"), "data.jsonl:2: the dataset is empty; give at least one sample");
  task.max_length = 2;
  task.on_too_long = OnTooLong::drop;
  EXPECT_EQ(complaint("{\"input_ids\": [1, 2, 3]}\n"),
            "data.jsonl:1: every sample is longer than max_length 2; raise max_length or set on_too_long to truncate");
}

TEST_F(DatasetFile, EveryBadLineIsNamedWithARemedy) {
  const std::string good = "{\"text\": \"fine\"}\n";
  const std::string kinds =
      R"(; give one of {"input_ids", "labels"}, {"text"}, {"prompt", "completion"}, {"messages"}; labels may be left out)";
  const std::vector<std::pair<std::string, std::string>> complaints = {
      {"[1, 2]", "not a JSON object" + kinds},
      {"null", "not a JSON object" + kinds},
      {"{}", "these fields are no kind of sample: none" + kinds},
      {R"({"txt": "a"})", "these fields are no kind of sample: txt" + kinds},
      {R"({"text": "a", "prompt": "b"})", "these fields are no kind of sample: text, prompt" + kinds},
      {R"({"prompt": "a"})", "these fields are no kind of sample: prompt" + kinds},
      {R"({"labels": [1, 2]})", "these fields are no kind of sample: labels" + kinds},
      {R"({"text": "a", "text": "b"})", "key 'text' is given twice; keep one"},
      {R"({"text": 5})", "'text' is not a string; give a string"},
      {R"({"text": ""})", "'text' is empty; give some text or remove the line"},
      {R"({"prompt": "a", "completion": ""})", "'completion' is empty; give some text or remove the line"},
      {R"({"input_ids": "a"})", "'input_ids' is 'a'; give a list"},
      {R"({"input_ids": [1, 2.5]})", "'input_ids' is '2.5'; give a whole number"},
      {R"({"input_ids": [1, 32000]})", "input_ids 32000 is not a token of this backbone; give ids in 0..31999"},
      {R"({"input_ids": [1, -100]})", "input_ids -100 is not a token of this backbone; give ids in 0..31999"},
      {R"({"input_ids": [1, 2], "labels": [1, -1]})",
       "labels -1 is not a token of this backbone; give ids in 0..31999, or -100 where unsupervised"},
      {R"({"input_ids": [1, 2], "labels": [1]})", "1 labels for 2 input_ids; give as many labels as input_ids"},
      {R"({"input_ids": []})", "the sample has 0 tokens; give at least 2: one to read and one to predict"},
      {R"({"input_ids": [1]})", "the sample has 1 token; give at least 2: one to read and one to predict"},
      {R"({"input_ids": [1, 2], "labels": [1, -100]})",
       "no token past the first is supervised; give a label, a completion or an assistant's message"},
      {R"({"messages": []})", "the sample has 0 tokens; give at least 2: one to read and one to predict"},
      {R"({"messages": [{"role": "user", "content": "q"}]})",
       "no token past the first is supervised; give a label, a completion or an assistant's message"},
      {R"({"messages": [{"role": "bot", "content": "q"}]})", "unknown role 'bot'; valid: system, user, assistant"},
      {R"({"messages": [{"role": "user"}]})", "'content' is missing; add 'content'"},
      {R"({"messages": [{"role": "user", "content": "q", "name": "n"}]})",
       "unknown key 'name'; valid keys: role, content"},
      {R"({"messages": [{"role": "user", "content": null}]})", "'content' is not a string; give a string"},
  };
  for (const auto& [line, expected] : complaints) {
    EXPECT_EQ(complaint(good + line + "\n" + good), "data.jsonl:2: " + expected) << line;
  }
  const std::string broken = complaint(good + "{\"text\": \n" + good);
  EXPECT_TRUE(broken.starts_with("data.jsonl:2: not valid JSON (")) << broken;
  EXPECT_TRUE(complaint(good + "{\"text\": \"\xff\"}\n").starts_with("data.jsonl:2: not valid JSON ("));
}

TEST_F(DatasetFile, WhatTheTokenizerRefusesIsNamedWithItsLine) {
  tokenizer = make_tokenizer(folder.path(), backbone);
  EXPECT_EQ(load("{\"input_ids\": [1, 2]}").samples.size(), 1u);
  const std::string text = complaint("{\"input_ids\": [1, 2]}\n{\"text\": \"a\"}\n");
  EXPECT_TRUE(text.starts_with("data.jsonl:2: the tokenizer of ")) << text;
  EXPECT_TRUE(contains(text, "scripts/pretokenize.py")) << text;
  const std::string chat = complaint(R"({"messages": [{"role": "assistant", "content": "a"}]})");
  EXPECT_TRUE(chat.starts_with("data.jsonl:1: the chat layout of this backbone is unknown")) << chat;
}

TEST_F(DatasetFile, ATokenizerPastTheBackbonesVocabularyIsRefused) {
  tokenizer = make_byte_tokenizer(folder.write("t.json", R"({"type": "byte", "eos": 32000})"));
  EXPECT_EQ(complaint("{\"text\": \"a\"}\n"),
            "data.jsonl:1: the tokenizer gave id 32000, the backbone has 32000 tokens; give the tokenizer of this "
            "backbone");
}

TEST_F(DatasetFile, AMissingFileIsNamed) {
  const std::string message = error_of([&] { load_dataset(folder / "none.jsonl", task, *tokenizer, backbone); });
  EXPECT_TRUE(contains(message, "none.jsonl: cannot be read")) << message;
}

}  // namespace
}  // namespace braid::workload
