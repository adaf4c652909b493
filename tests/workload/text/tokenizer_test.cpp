#include "workload/text/tokenizer.h"

#include <gtest/gtest.h>

#include "base/node.h"
#include "workload/texts.h"

namespace braid::workload {
namespace {

const std::filesystem::path kGolden = std::filesystem::path(BRAID_SOURCE_DIR) / "tests/golden/sentencepiece";

costmodel::BackboneShape backbone_of(std::int64_t vocabulary) {
  costmodel::BackboneShape shape = costmodel::builtin_backbone("tinyllama-1.1b");
  shape.vocabulary = vocabulary;
  return shape;
}

class SentencePiece : public testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(kGolden / "tokenizer.model")) GTEST_SKIP() << kGolden << " is not there";
    std::filesystem::copy_file(kGolden / "tokenizer.model", folder / "tokenizer.model");
  }

  TestFolder folder;
};

TEST(ByteTokenizer, IdsAreTheBytes) {
  const auto tokenizer = byte_tokenizer();
  EXPECT_EQ(tokenizer->encode(""), std::vector<std::int32_t>{});
  EXPECT_EQ(tokenizer->encode("aB\n"), (std::vector<std::int32_t>{97, 66, 10}));
  EXPECT_EQ(tokenizer->encode("é"), (std::vector<std::int32_t>{0xC3, 0xA9}));
  EXPECT_EQ(tokenizer->facts().bos, 256);
  EXPECT_EQ(tokenizer->facts().eos, 257);
  EXPECT_EQ(tokenizer->facts().vocabulary, kByteVocabulary);
  EXPECT_TRUE(tokenizer->facts().prepends_bos);
}

TEST(ByteTokenizer, SpecialTokensAreLookedUpAndNeverMadeFromText) {
  const auto tokenizer = byte_tokenizer();
  EXPECT_EQ(tokenizer->token_id("<|im_start|>"), 258);
  EXPECT_EQ(tokenizer->token_id("<|im_end|>"), 259);
  EXPECT_EQ(tokenizer->token_id("<|eot_id|>"), std::nullopt);
  EXPECT_EQ(tokenizer->encode("<|im_start|>"), bytes("<|im_start|>"));
}

TEST(ByteTokenizer, ItsFileMayLeaveTokensOut) {
  const TestFolder folder;
  const auto bare = make_byte_tokenizer(folder.write("t.json", R"({"type": "byte"})"));
  EXPECT_EQ(bare->facts().bos, std::nullopt);
  EXPECT_EQ(bare->facts().eos, std::nullopt);
  EXPECT_FALSE(bare->facts().prepends_bos);
  EXPECT_EQ(bare->facts().vocabulary, 256);
  const auto silent = make_byte_tokenizer(folder.write("t.json", R"({"type": "byte", "bos": 300, "add_bos": false})"));
  EXPECT_EQ(silent->facts().bos, 300);
  EXPECT_FALSE(silent->facts().prepends_bos);
  EXPECT_EQ(silent->facts().vocabulary, 301);
}

TEST(ByteTokenizer, ABadFileIsNamedWithItsLine) {
  const TestFolder folder;
  const auto complaint = [&](const std::string& text) {
    return error_of([&] { make_byte_tokenizer(folder.write("t.json", text)); });
  };
  EXPECT_EQ(complaint("{\n\"type\": \"bpe\"}"),
            (folder / "t.json").string() + ":2: unknown tokenizer type 'bpe'; valid types: byte");
  EXPECT_TRUE(
      contains(complaint("{\"type\": \"byte\",\n\n\"bos\": 12}"), "t.json:3: 'bos' is '12'; give a whole number"));
  EXPECT_TRUE(
      contains(complaint(R"({"type": "byte", "pad": 256})"), "t.json:1: unknown key 'pad'; valid keys: type, bos"));
}

TEST(Tokenizer, OneThatIsNotBuiltInRefusesTextAndNamesTheScript) {
  const TestFolder folder;
  const auto missing = make_tokenizer(folder.path(), backbone_of(1000));
  const std::string message = error_of([&] { missing->encode("text"); });
  EXPECT_EQ(error_of([&] { missing->facts(); }), message);
  EXPECT_EQ(error_of([&] { missing->token_id("<s>"); }), message);
  EXPECT_EQ(message, folder.path().string() +
                         ": no tokenizer.json and no tokenizer.model; put the model's own there, or give a dataset of "
                         "input_ids, which scripts/pretokenize.py makes");
  const std::string builtin = error_of([&] { make_tokenizer({}, backbone_of(1000))->encode("text"); });
  EXPECT_TRUE(contains(builtin, "tinyllama-1.1b")) << builtin;
  EXPECT_TRUE(contains(builtin, "scripts/pretokenize.py")) << builtin;
}

TEST(Tokenizer, ItsIdsMustFitTheBackbone) {
  const TestFolder folder;
  folder.write("braid_tokenizer.json", byte_tokenizer_json());
  EXPECT_EQ(make_tokenizer(folder.path(), backbone_of(260))->facts().vocabulary, 260);
  EXPECT_TRUE(contains(error_of([&] { make_tokenizer(folder.path(), backbone_of(259))->facts(); }),
                       "the tokenizer knows 260 ids, the backbone only 259"));
}

TEST(Tokenizer, PartsJoinToTheWhole) {
  const auto tokenizer = byte_tokenizer();
  const auto [before, after] = encode_parts(*tokenizer, "ab", "cd");
  EXPECT_EQ(before, bytes("ab"));
  EXPECT_EQ(after, bytes("cd"));
  EXPECT_TRUE(encode_parts(*tokenizer, "", "x").first.empty());
  EXPECT_TRUE(encode_parts(*tokenizer, "x", "").second.empty());
}

TEST_F(SentencePiece, EncodesAsTheOriginalLibraryDid) {
  const auto tokenizer = make_tokenizer(folder.path(), backbone_of(32000));
  const Node cases = read_json(kGolden / "expected.json");
  ASSERT_FALSE(cases.sequence("cases").empty());
  for (const Node& expected : cases.items) {
    if (contains(expected.string_at("text"), "<s>")) continue;  // which the library spells out
    std::vector<std::int32_t> ids;
    for (const Node& id : expected.at("ids").sequence("ids")) {
      ids.push_back(static_cast<std::int32_t>(id.as_integer("id")));
    }
    EXPECT_EQ(tokenizer->encode(expected.string_at("text")), ids) << expected.string_at("text");
  }
}

TEST_F(SentencePiece, TakesBosAndEosFromTheModel) {
  const auto tokenizer = make_tokenizer(folder.path(), backbone_of(32000));
  EXPECT_EQ(tokenizer->facts().bos, tokenizer->token_id("<s>"));
  EXPECT_EQ(tokenizer->facts().eos, tokenizer->token_id("</s>"));
  EXPECT_TRUE(tokenizer->facts().bos.has_value());
  EXPECT_FALSE(tokenizer->facts().prepends_bos);
  EXPECT_EQ(tokenizer->token_id("<|im_start|>"), std::nullopt);
  EXPECT_EQ(tokenizer->facts().chat_template, "");
}

TEST_F(SentencePiece, HuggingFacesFilesBesideTheModelCount) {
  folder.write("tokenizer_config.json", R"({"add_bos_token": true, "eos_token": {"content": "<|im_end|>"},
    "added_tokens_decoder": {"448": {"content": "<|im_start|>"}, "449": {"content": "<|im_end|>"}},
    "chat_template": [{"name": "tools", "template": "no"}, {"name": "default", "template": "yes"}]})");
  const auto tokenizer = make_tokenizer(folder.path(), backbone_of(32000));
  EXPECT_TRUE(tokenizer->facts().prepends_bos);
  EXPECT_EQ(tokenizer->facts().bos, tokenizer->token_id("<s>"));
  EXPECT_EQ(tokenizer->facts().eos, 449);
  EXPECT_EQ(tokenizer->token_id("<|im_start|>"), 448);
  EXPECT_EQ(tokenizer->encode("<|im_end|>"), std::vector<std::int32_t>{449});
  EXPECT_EQ(tokenizer->facts().chat_template, "yes");
  folder.write("chat_template.jinja", "newer");
  EXPECT_EQ(make_tokenizer(folder.path(), backbone_of(32000))->facts().chat_template, "newer");
}

TEST_F(SentencePiece, AnAddedTokenHasTheIdThatItsPlaceGivesOrIsRefused) {
  folder.write("added_tokens.json", R"({"<b>": 449, "<a>": 448})");
  const auto tokenizer = make_tokenizer(folder.path(), backbone_of(32000));
  EXPECT_EQ(tokenizer->token_id("<a>"), 448);
  EXPECT_EQ(tokenizer->token_id("<b>"), 449);
  folder.write("added_tokens.json", R"({"<a>": 450})");
  EXPECT_EQ(error_of([&] { make_tokenizer(folder.path(), backbone_of(32000))->encode("a"); }),
            folder.path().string() +
                ": the added token '<a>' has the id 450, and by the order of the tokens it is 448; mend the "
                "tokenizer's files, or give input_ids");
}

TEST(Tiktoken, IsNamedWhereTextNeedsIt) {
  const TestFolder folder;
  folder.write("tokenizer.model", "IQ== 0\nIg== 1\n");
  const std::string message = error_of([&] { make_tokenizer(folder.path(), backbone_of(32000))->encode("a"); });
  EXPECT_TRUE(contains(message,
                       "tokenizer.model: a tiktoken file, which is not built in; put the model's "
                       "tokenizer.json beside it, or give a dataset of input_ids"))
      << message;
}

TEST_F(SentencePiece, WhatFollowsKeepsItsIdsOrStandsAlone) {
  const auto tokenizer = make_tokenizer(folder.path(), backbone_of(32000));
  const auto join = [](std::pair<std::vector<std::int32_t>, std::vector<std::int32_t>> parts) {
    parts.first.insert(parts.first.end(), parts.second.begin(), parts.second.end());
    return parts.first;
  };
  EXPECT_EQ(join(encode_parts(*tokenizer, "the loom", " holds many")), tokenizer->encode("the loom holds many"));
  EXPECT_EQ(join(encode_parts(*tokenizer, "user\n", "the thread")), tokenizer->encode("user\nthe thread"));
  // "the" is one piece, so "t" before "he" is none of its beginnings.
  EXPECT_EQ(encode_parts(*tokenizer, "t", "he"), std::make_pair(tokenizer->encode("t"), tokenizer->encode("he")));
}

TEST(BrokenSentencePiece, IsNamed) {
  const TestFolder folder;
  folder.write("tokenizer.model", "not a model");
  EXPECT_EQ(
      error_of([&] { make_tokenizer(folder.path(), backbone_of(32000))->facts(); }),
      (folder / "tokenizer.model").string() + ": not a SentencePiece model; give the backbone's own tokenizer.model");
}

}  // namespace
}  // namespace braid::workload
