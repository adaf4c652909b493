#include "workload/chat.h"

#include <map>

#include <gtest/gtest.h>

#include "texts.h"

namespace braid::workload {
namespace {

/// Bytes, with any special tokens and template.
class FakeTokenizer : public Tokenizer {
 public:
  FakeTokenizer(std::map<std::string, std::int32_t, std::less<>> specials, std::string chat_template)
      : Tokenizer({.bos = 1000, .eos = 1001, .vocabulary = 2000, .chat_template = std::move(chat_template)}),
        specials_(std::move(specials)) {}

  std::vector<std::int32_t> encode(std::string_view text) const override { return bytes(text); }
  std::optional<std::int32_t> token_id(std::string_view token) const override {
    const auto found = specials_.find(token);
    if (found == specials_.end()) return std::nullopt;
    return found->second;
  }

 private:
  std::map<std::string, std::int32_t, std::less<>> specials_;
};

const std::vector<Message> kConversation = {
    {"system", "Be brief."}, {"user", "2+2?"}, {"assistant", " 4 "}, {"user", "Sure?"}, {"assistant", "Yes"}};

TEST(ChatMl, IsTheExactSequenceAndSupervisesOnlyTheAssistant) {
  const auto tokenizer = byte_tokenizer();
  Sample expected;
  const auto turn = [&](const std::string& role, const std::string& content) {
    const bool supervised = role == "assistant";
    expected.append(258, false);
    expected.append(bytes(role + "\n"), false);
    expected.append(bytes(content), supervised);
    expected.append(259, supervised);
    expected.append('\n', false);
  };
  turn("system", "Be brief.");
  turn("user", "2+2?");
  turn("assistant", " 4 ");
  turn("user", "Sure?");
  turn("assistant", "Yes");
  EXPECT_EQ(encode_chat(kConversation, chat_format(*tokenizer, {}), *tokenizer), expected);
}

TEST(Llama3, IsTheExactSequenceAndSupervisesOnlyTheAssistant) {
  const FakeTokenizer tokenizer({{"<|start_header_id|>", 1006}, {"<|end_header_id|>", 1007}, {"<|eot_id|>", 1009}},
                                "{{- bos_token }}...<|start_header_id|>...");
  Sample expected;
  expected.append(1000, false);
  const auto turn = [&](const std::string& role, const std::string& content) {
    const bool supervised = role == "assistant";
    expected.append(1006, false);
    expected.append(bytes(role), false);
    expected.append(1007, false);
    expected.append(bytes("\n\n"), false);
    expected.append(bytes(content), supervised);
    expected.append(1009, supervised);
  };
  turn("system", "Be brief.");
  turn("user", "2+2?");
  turn("assistant", "4");
  turn("user", "Sure?");
  turn("assistant", "Yes");
  EXPECT_EQ(encode_chat(kConversation, chat_format(tokenizer, {}), tokenizer), expected);
}

TEST(ChatFormat, IsWhatTheTemplateShows) {
  const FakeTokenizer chatml({}, "x <|im_start|> y");
  EXPECT_EQ(chat_format(chatml, {}).layout, ChatLayout::chatml);
  EXPECT_FALSE(chat_format(chatml, {}).begins_with_bos);
  const FakeTokenizer with_bos({}, "{{ bos_token }}<|im_start|>");
  EXPECT_TRUE(chat_format(with_bos, {}).begins_with_bos);
  const FakeTokenizer llama3({}, "<|start_header_id|>");
  EXPECT_EQ(chat_format(llama3, {}).layout, ChatLayout::llama3);
  EXPECT_TRUE(chat_format(llama3, {}).begins_with_bos);
}

TEST(ChatFormat, TheTaskMayChooseAnother) {
  const FakeTokenizer unknown({}, "[INST]");
  EXPECT_EQ(chat_format(unknown, ChatLayout::chatml).layout, ChatLayout::chatml);
  EXPECT_EQ(chat_format(unknown, ChatLayout::llama3).layout, ChatLayout::llama3);
}

TEST(ChatFormat, AnUnknownOneListsTheKnownAndTheScript) {
  for (const char* shown : {"[INST]", ""}) {
    const std::string message = error_of([&] { chat_format(FakeTokenizer({}, shown), {}); });
    for (const char* part : {"chatml", "llama3", "scripts/pretokenize.py"}) {
      EXPECT_TRUE(contains(message, part)) << message;
    }
  }
}

TEST(ChatFormat, ALayoutNeedsItsTokens) {
  const auto tokenizer = byte_tokenizer();
  const std::string message =
      error_of([&] { encode_chat(kConversation, chat_format(*tokenizer, ChatLayout::llama3), *tokenizer); });
  EXPECT_TRUE(contains(message, "the tokenizer has no <|start_header_id|>, which the llama3 layout needs")) << message;
}

}  // namespace
}  // namespace braid::workload
