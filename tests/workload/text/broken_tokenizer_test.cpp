#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "base/random.h"
#include "base/utf8.h"
#include "support.h"
#include "workload/text/tokenizer.h"

// Files of tokenizers that are spoilt, or that ask for what is not built in.
namespace braid::workload {
namespace {

const std::string kTokenizerJson = R"({
 "version": "1.0",
 "added_tokens": [
  {"id": 5, "content": "<s>", "lstrip": false, "rstrip": false, "single_word": false, "normalized": false, "special": true}],
 "normalizer": {"type": "NFC"},
 "pre_tokenizer": {"type": "Split", "pattern": {"Regex": "\\s+|\\S+"}, "behavior": "Isolated", "invert": false},
 "post_processor": {"type": "TemplateProcessing",
  "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
  "pair": [], "special_tokens": {"<s>": {"id": "<s>", "ids": [5], "tokens": ["<s>"]}}},
 "model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "c": 2, "ab": 3, "abc": 4},
  "merges": [["a", "b"], ["ab", "c"]]}
})";
const std::string kTokenizerConfig = R"({"tokenizer_class": "PreTrainedTokenizerFast", "bos_token": "<s>"})";

struct TokenizerFolder {
  TokenizerFolder(const std::string& json, const std::string& config) {
    folder.write("tokenizer.json", json);
    folder.write("tokenizer_config.json", config);
  }
  std::unique_ptr<Tokenizer> tokenizer() const {
    costmodel::BackboneShape backbone = costmodel::builtin_backbone("tinyllama-1.1b");
    backbone.vocabulary = 100;
    return make_tokenizer(folder.path(), backbone);
  }
  TestFolder folder;
};

std::string replaced(std::string text, const std::string& what, const std::string& by) {
  const std::size_t place = text.find(what);
  EXPECT_NE(place, std::string::npos) << what;
  return text.replace(place, what.size(), by);
}

TEST(BrokenTokenizer, TheWholeOneIsRead) {
  const TokenizerFolder folder(kTokenizerJson, kTokenizerConfig);
  const auto tokenizer = folder.tokenizer();
  EXPECT_EQ(tokenizer->encode("abcab<s>c"), (std::vector<std::int32_t>{4, 3, 5, 2}));
  EXPECT_TRUE(tokenizer->facts().prepends_bos);
}

TEST(BrokenTokenizer, IsNamedWithWhatIsWrongAndTheWayOut) {
  struct Spoilt {
    std::string what, by, words;
  };
  const Spoilt cases[] = {
      {"\"BPE\"", "\"Unigram\"", "the model Unigram is not built in"},
      {"\"BPE\"", "\"BPE\", \"dropout\": 0.1", "a dropout of merges is not built in"},
      {"\"BPE\"", "\"BPE\", \"continuing_subword_prefix\": \"##\"", "continuing_subword_prefix"},
      {"\"ab\", \"c\"", "\"ab\", \"d\"", "a merge needs 'd', which is no token"},
      {"\"ab\", \"c\"", "\"b\", \"c\"", "a merge needs 'bc', which is no token"},
      {"[\"a\", \"b\"]", "[\"a\"]", "a merge is not of two tokens"},
      {"[\"a\", \"b\"]", "\"ab\"", "is not of two tokens"},
      {"\"c\": 2", "\"c\": -2", "-2"},
      {"\"c\": 2", "\"c\": \"two\"", "two"},
      {"\"NFC\"", "\"Nmt\"", "the normalizer Nmt is not built in"},
      {"\"NFC\"", "\"NFC\", \"new\": 1", "new"},
      {"{\"type\": \"NFC\"}", "[]", "'normalizer' is no object"},
      {"\"Split\"", "\"UnicodeScripts\"", "the pre-tokenizer UnicodeScripts is not built in"},
      {"\\\\s+|\\\\S+", "(", "("},
      {"\"Isolated\"", "\"Sideways\"", "Sideways"},
      {"\"TemplateProcessing\"", "\"RobertaProcessing\"", "the post-processor RobertaProcessing is not built in"},
      {"\"SpecialToken\": {\"id\": \"<s>\"", "\"SpecialToken\": {\"id\": \"<t>\"", "which it does not list"},
      {"\"ids\": [5]", "\"ids\": [0]", "begins a text with something other than the bos_token"},
      {"\"version\": \"1.0\"", "\"revision\": 1", "revision"},
      {"\"model\"", "\"models\"", "models"},
      {"\"vocab\"", "\"words\"", "words"},
  };
  for (const Spoilt& spoilt : cases) {
    SCOPED_TRACE(spoilt.by);
    const TokenizerFolder folder(replaced(kTokenizerJson, spoilt.what, spoilt.by), kTokenizerConfig);
    const std::string message = error_of([&] { folder.tokenizer()->encode("ab"); });
    EXPECT_TRUE(message.starts_with((folder.folder / "tokenizer.json").string() + ":")) << message;
    EXPECT_TRUE(contains(message, spoilt.words)) << message;
    EXPECT_TRUE(contains(message, "; ")) << message;
  }
}

TEST(BrokenTokenizer, AnIdPastTheBackboneIsRefused) {
  const TokenizerFolder folder(replaced(kTokenizerJson, "\"abc\": 4", "\"abc\": 400"), kTokenizerConfig);
  EXPECT_TRUE(contains(error_of([&] { folder.tokenizer()->facts(); }), "the backbone only 100"));
}

TEST(BrokenTokenizer, ItsConfigurationIsNamed) {
  const std::pair<std::string, std::string> cases[] = {
      {R"({"tokenizer_class": "BertTokenizer"})", "the tokenizer_class BertTokenizer is not built in"},
      {R"({"tokenizer_class": "PreTrainedTokenizerFast", "auto_map": {"AutoTokenizer": ["own.Own", null]}})",
       "auto_map"},
      {R"({"bos_token": 5})", "bos_token"},
      {R"([])", "tokenizer_config.json:1"},
  };
  for (const auto& [config, words] : cases) {
    SCOPED_TRACE(config);
    const TokenizerFolder folder(kTokenizerJson, config);
    const std::string message = error_of([&] { folder.tokenizer()->encode("ab"); });
    EXPECT_TRUE(contains(message, "tokenizer_config.json")) << message;
    EXPECT_TRUE(contains(message, words)) << message;
  }
}

RC_GTEST_PROP(BrokenTokenizer, AnyBytesAreReadOrRefusedInOneLineOfUtf8, (std::uint32_t seed)) {
  RandomStream random(seed);
  std::string json = kTokenizerJson;
  for (int i = 0; i < 3; ++i) {
    const auto place = static_cast<std::size_t>(random.next_below(json.size()));
    if (random.next_below(2) == 0) {
      json[place] = static_cast<char>(random.next_below(256));
    } else {
      json.erase(place, static_cast<std::size_t>(1 + random.next_below(4)));
    }
  }
  const TokenizerFolder folder(json, kTokenizerConfig);
  try {
    folder.tokenizer()->encode("abc ab <s> \xc3\xa9");
  } catch (const Error& failure) {
    RC_ASSERT(find_invalid_utf8(failure.what()) == std::string_view::npos);
    RC_ASSERT(std::string_view(failure.what()).find('\n') == std::string_view::npos);
  }
}

}  // namespace
}  // namespace braid::workload
