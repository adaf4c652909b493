#include "workload/text/dataset.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include "base/utf8.h"
#include "workload/texts.h"

namespace braid::workload {
namespace {

constexpr std::int32_t kBos = 256;
constexpr std::int32_t kEos = 257;

/// Bytes, of which "b" is BOS and "e" EOS: marks that a text may hold itself.
class MarkedBytes : public Tokenizer {
 public:
  MarkedBytes() : Tokenizer({.bos = 'b', .eos = 'e', .prepends_bos = true, .vocabulary = 256, .chat_template = {}}) {}

  std::vector<std::int32_t> encode(std::string_view text) const override { return bytes(text); }
  std::optional<std::int32_t> token_id(std::string_view) const override { return std::nullopt; }
};

class DatasetFile : public testing::Test {
 protected:
  DatasetFile() : tokenizer(byte_tokenizer()), backbone(costmodel::builtin_backbone("tinyllama-1.1b")) {
    task.name = "t";
    task.max_length = 32;
  }

  Dataset load(const std::string& text) {
    return load_dataset(folder.write("data.jsonl", text), task, *tokenizer, backbone, {});
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
  return {std::move(tokens), std::move(labels), {}, 0};
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

TEST_F(DatasetFile, WhatCuttingLeavesNothingToLearnOfIsLeftOutAndCounted) {
  task.max_length = 4;
  task.on_too_long = OnTooLong::truncate;
  const Dataset dataset = load(
      "{\"prompt\": \"abcd\", \"completion\": \"e\"}\n{\"prompt\": \"\", \"completion\": \"abcd\"}\n"
      "{\"prompt\": \"a\", \"completion\": \"b\"}");
  EXPECT_EQ(dataset.samples.size(), 2U);
  EXPECT_EQ(dataset.emptied, 1);
  EXPECT_EQ(dataset.truncated, 1);
  EXPECT_EQ(dataset.dropped, 0);
}

TEST_F(DatasetFile, ATextThatBeginsWithBosOrEndsWithEosGetsNoSecondOne) {
  tokenizer = std::make_unique<MarkedBytes>();
  EXPECT_EQ(load(R"({"text": "bye"})").samples.at(0).tokens, bytes("bye"));
  EXPECT_EQ(load(R"({"text": "you"})").samples.at(0).tokens, bytes("byoue"));
  const Sample answered = load(R"({"prompt": "be", "completion": "e"})").samples.at(0);
  EXPECT_EQ(answered, sample(bytes("bee"), {-100, -100, 'e'}));
  EXPECT_EQ(load(R"({"prompt": "be", "completion": ""})").samples.at(0), answered);
}

TEST_F(DatasetFile, AnEmptyDatasetIsAnError) {
  EXPECT_EQ(complaint(""), "data.jsonl:1: the dataset is empty; give at least one sample");
  EXPECT_EQ(complaint("\n\n"), "data.jsonl:1: the dataset is empty; give at least one sample");
  task.max_length = 2;
  task.on_too_long = OnTooLong::drop;
  EXPECT_EQ(complaint("{\"input_ids\": [1, 2, 3]}\n"),
            "data.jsonl:1: every sample is longer than max_length 2; raise max_length or set on_too_long to truncate");
}

TEST_F(DatasetFile, TokensMustBeTheBackbones) {
  const std::vector<std::pair<std::string, std::string>> complaints = {
      {R"({"input_ids": [1, 32000]})", "input_ids 32000 is not a token of this backbone; give ids in 0..31999"},
      {R"({"input_ids": [1, -100]})", "input_ids -100 is not a token of this backbone; give ids in 0..31999"},
      {R"({"input_ids": [1, 2], "labels": [1, -1]})",
       "labels -1 is not a token of this backbone; give ids in 0..31999, or -100 where unsupervised"},
  };
  const std::string good = "{\"text\": \"fine\"}\n";
  for (const auto& [line, expected] : complaints)
    EXPECT_EQ(complaint(good + line + "\n" + good), "data.jsonl:2: " + expected) << line;
}

TEST_F(DatasetFile, RowsOverSeveralLinesAreNamedWithTheLineAtFault) {
  EXPECT_TRUE(complaint("[\n{\n\"text\":\n5}]").starts_with("data.jsonl:3: 'text' is 5"));
  EXPECT_TRUE(complaint("[\n{\"text\": \"a\"},\n{\n\"text\" 5}]").starts_with("data.jsonl:4: not valid JSON ("));
  tokenizer = make_tokenizer(folder.path(), backbone);
  EXPECT_TRUE(complaint("{\n\"text\":\n\"a\"\n}").starts_with("data.jsonl:1: " + folder.path().string()));
}

RC_GTEST_FIXTURE_PROP(DatasetFile, AnyBytesAreReadOrRefusedInOneLineOfUtf8, (const std::vector<std::uint8_t>& bytes)) {
  const std::string text = "{\"text\": \"" + std::string(bytes.begin(), bytes.end()) + "\"}";
  for (const std::string& content : {std::string(bytes.begin(), bytes.end()), text}) {
    try {
      load(content);
    } catch (const Error& failure) {
      RC_ASSERT(find_invalid_utf8(failure.what()) == std::string_view::npos);
    }
  }
}

TEST_F(DatasetFile, WhatTheTokenizerRefusesIsNamedWithItsLine) {
  tokenizer = make_tokenizer(folder.path(), backbone);
  EXPECT_EQ(load("{\"input_ids\": [1, 2]}").samples.size(), 1u);
  const std::string text = complaint("{\"input_ids\": [1, 2]}\n{\"text\": \"a\"}\n");
  EXPECT_TRUE(text.starts_with("data.jsonl:2: " + folder.path().string())) << text;
  EXPECT_TRUE(contains(text, "scripts/pretokenize.py")) << text;
  const std::string chat = complaint(R"({"messages": [{"role": "assistant", "content": "a"}]})");
  EXPECT_TRUE(chat.starts_with("data.jsonl:1: " + folder.path().string())) << chat;
}

TEST_F(DatasetFile, RowsOfTokensAskNothingOfATokenizer) {
  folder.write("tokenizer.model", "IQ== 0\nIg== 1\n");
  folder.write("tokenizer_config.json", "{\"chat_template\": \n");
  folder.write("added_tokens.json", "[]");
  tokenizer = make_tokenizer(folder.path(), backbone);
  EXPECT_EQ(load("{\"input_ids\": [1, 2]}").samples.size(), 1u);
  EXPECT_TRUE(complaint("{\"input_ids\": [1, 2]}\n{\"text\": \"a\"}").starts_with("data.jsonl:2: "));
}

TEST_F(DatasetFile, ATokenizerPastTheBackbonesVocabularyIsRefused) {
  tokenizer = make_byte_tokenizer(folder.write("t.json", R"({"type": "byte", "eos": 32000})"));
  EXPECT_EQ(complaint("{\"text\": \"a\"}\n"),
            "data.jsonl:1: the tokenizer gave id 32000, the backbone has 32000 tokens; give the tokenizer of this "
            "backbone");
}

/// Of a file's rows each is learned from or evaluated on, which ones does not depend on the task; what another file has
/// is not learned from.
TEST_F(DatasetFile, WhatIsEvaluatedOnIsNotLearnedFrom) {
  std::string rows;
  for (int i = 0; i < 40; ++i) rows += "{\"input_ids\": [" + std::to_string(i) + ", 1]}\n";
  task.dataset = folder.write("data.jsonl", rows);
  const auto loaded = [&] { return load_task_data(task, *tokenizer, backbone, {}); };
  EXPECT_EQ(loaded().held_out, 0);
  task.evaluation = Evaluation{0.25, {}, 0, 0};
  const Dataset split = loaded();
  ASSERT_EQ(split.samples.size(), 40U);
  EXPECT_EQ(split.held_out, 10);
  EXPECT_EQ(sample_sizes(split).size(), 30U);
  EXPECT_EQ(held_out_sizes(split).size(), 10U);
  std::vector<std::int32_t> all, held;
  for (const Sample& one : split.samples) all.push_back(one.tokens[0]);
  held.assign(all.begin() + 30, all.end());
  EXPECT_TRUE(std::ranges::is_sorted(all.begin(), all.begin() + 30));
  std::ranges::sort(all);
  for (int i = 0; i < 40; ++i) EXPECT_EQ(all[static_cast<std::size_t>(i)], i);
  EXPECT_NE(held, std::vector<std::int32_t>({30, 31, 32, 33, 34, 35, 36, 37, 38, 39})) << "the last are as good as any";
  task.seed = 5, task.name = "other";
  EXPECT_EQ(loaded().samples, split.samples);
  for (const double fraction : {0.001, 0.999}) {
    task.evaluation = Evaluation{fraction, {}, 0, 0};
    expect_error(loaded, fraction < 0.5 ? "leaves none to evaluate on" : "leaves none to learn from", "give another");
  }
  task.evaluation = Evaluation{0, folder.write("held.jsonl", "{\"input_ids\": [7, 7, 7]}\n"), 0, 0};
  const Dataset beside = loaded();
  EXPECT_EQ(beside.held_out, 1);
  EXPECT_EQ(sample_sizes(beside).size(), 40U);
  EXPECT_EQ(beside.samples.back(), sample({7, 7, 7}, {7, 7, 7}));
}

TEST_F(DatasetFile, AMissingFileIsNamed) {
  const std::string message = error_of([&] { load_dataset(folder / "none.jsonl", task, *tokenizer, backbone, {}); });
  EXPECT_TRUE(contains(message, "none.jsonl: cannot be read")) << message;
}

}  // namespace
}  // namespace braid::workload
