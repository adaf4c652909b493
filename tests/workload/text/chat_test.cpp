#include "workload/text/chat.h"

#include <gtest/gtest.h>

#include "base/node.h"
#include "workload/text/chats.h"
#include "workload/text/dataset.h"
#include "workload/text/samples.h"

namespace braid::workload {
namespace {

const std::vector<Message> kConversation = {
    {"system", "Be brief."}, {"user", "2+2?"}, {"assistant", " 4 "}, {"user", "Sure?"}, {"assistant", "Yes"}};
const std::vector<std::string> kLlama3Marks = {"<bos>", "<eos>", "<|start_header_id|>", "<|end_header_id|>",
                                               "<|eot_id|>"};
constexpr const char* kChatMl =
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";

/// A folder with a chat template in a file of its own.
class ChatFolder {
 public:
  explicit ChatFolder(const std::string& text = "") {
    folder.write("tokenizer_config.json", R"({"bos_token": "<bos>", "eos_token": {"content": "<eos>"}})");
    if (!text.empty()) folder.write("chat_template.jinja", text);
  }

  std::vector<std::string> runs(const MarkTokenizer& tokenizer, std::optional<ChatLayout> chosen = {},
                                std::span<const Message> messages = kConversation) const {
    const Sample sample = Chat(folder.path(), tokenizer, chosen).encode(messages);
    return runs_of(sample, [&](std::int32_t id) { return tokenizer.text_of(id); });
  }

  TestFolder folder;
};

const std::vector<std::string> kChatMlRuns = {
    "0:<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\n2+2?<|im_end|>\n<|im_start|>assistant\n",
    "1: 4 <|im_end|>", "0:\n<|im_start|>user\nSure?<|im_end|>\n<|im_start|>assistant\n", "1:Yes<|im_end|>", "0:\n"};
const std::vector<std::string> kLlama3Runs = {
    "0:<bos><|start_header_id|>system<|end_header_id|>\n\nBe "
    "brief.<|eot_id|><|start_header_id|>user<|end_header_id|>\n\n"
    "2+2?<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n",
    "1:4<|eot_id|>",
    "0:<|start_header_id|>user<|end_header_id|>\n\nSure?<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n",
    "1:Yes<|eot_id|>"};

// chats.json holds chat templates (a text, or the name of one in tests/golden/chat_templates), rows, and what is to be
// made of them, as rows.json does. scripts/golden/check_pretokenize.py holds scripts/pretokenize.py to the same.
TEST(Chat, RowsAreLaidOutAndLearnedAsTheTableSays) {
  const MarkTokenizer tokenizer;
  const costmodel::BackboneShape backbone = costmodel::builtin_backbone("tinyllama-1.1b");
  Task task;
  task.max_length = 512;
  const Node table = read_json(std::filesystem::path(BRAID_SOURCE_DIR) / "tests" / "workload" / "text" / "chats.json");
  ASSERT_GT(table.items.size(), 25U);
  for (const Node& row : table.items) {
    SCOPED_TRACE(row.string_at("name"));
    const std::string named = row.string_at("template");
    const ChatFolder chat(contains(named, "{") ? named : read_file(golden("chat_templates") / (named + ".jinja")));
    const std::filesystem::path file = chat.folder.write("rows.jsonl", row.string_at("file"));
    const auto load = [&] { return load_dataset(file, task, tokenizer, backbone, chat.folder.path()); };
    if (const Node* error = row.find("error")) {
      const std::string message = error_of(load);
      EXPECT_TRUE(message.starts_with(file.string() + ":" + error->text)) << message << "\n" << error->text;
      continue;
    }
    std::vector<std::vector<std::string>> runs;
    for (const Sample& sample : load().samples)
      runs.push_back(runs_of(sample, [&](std::int32_t id) { return tokenizer.text_of(id); }));
    EXPECT_EQ(runs, expected_runs(row.at("samples")));
  }
}

TEST(Chat, TheByteTokenizersIsChatMl) {
  const auto tokenizer = byte_tokenizer();
  Sample expected;
  const auto turn = [&](const std::string& role, const std::string& content) {
    const bool supervised = role == "assistant";
    expected.append(258, 0);
    expected.append(bytes(role + "\n"), 0);
    expected.append(bytes(content), supervised ? 1.0F : 0.0F);
    expected.append(259, supervised ? 1.0F : 0.0F);
    expected.append(10, 0);
  };
  for (const Message& message : kConversation) turn(message.role, message.content);
  EXPECT_EQ(Chat({}, *tokenizer, {}).encode(kConversation), expected);
  EXPECT_EQ(Chat({}, *tokenizer, ChatLayout::chatml).encode(kConversation), expected);
}

TEST(Chat, AChosenLayoutIsTheExactSequence) {
  const ChatFolder none;
  EXPECT_EQ(none.runs(MarkTokenizer(), ChatLayout::chatml), kChatMlRuns);
  EXPECT_EQ(none.runs(MarkTokenizer(kLlama3Marks), ChatLayout::llama3), kLlama3Runs);
}

TEST(Chat, TokenizersThatSpellSpecialTokensOutGiveTheSame) {
  const MarkTokenizer spells({"<bos>", "<eos>", "<|im_start|>", "<|im_end|>"}, "", true);
  EXPECT_EQ(ChatFolder().runs(spells, ChatLayout::chatml), kChatMlRuns);
  EXPECT_EQ(ChatFolder(kChatMl).runs(spells), kChatMlRuns);
  EXPECT_EQ(ChatFolder().runs(MarkTokenizer(kLlama3Marks, "", true), ChatLayout::llama3), kLlama3Runs);
  std::vector<std::string> with_bos = kChatMlRuns;
  with_bos[0].insert(2, "<bos>");
  EXPECT_EQ(ChatFolder(std::string("{{ bos_token }}") + kChatMl).runs(spells), with_bos);
}

TEST(Chat, WhatSuchATokenizerWouldMisreadIsRefused) {
  const MarkTokenizer spells({"<bos>", "<eos>", "<|im_start|>", "<|im_end|>"}, "", true);
  const ChatFolder folder("<|im_start|>system\nx<|im_end|>\n" + std::string(kChatMl));
  expect_error([&] { folder.runs(spells); },
               "for text, so that what the chat template writes is not what its model reads", "scripts/pretokenize.py");
}

TEST(Chat, AChosenLayoutThatIsNotTheTemplatesIsTakenAndTold) {
  const auto told = [](const std::string& text, ChatLayout chosen, const MarkTokenizer& tokenizer) {
    const ChatFolder folder(text);
    testing::internal::CaptureStderr();
    folder.runs(tokenizer, chosen);
    folder.runs(tokenizer, chosen);
    const std::string lines = testing::internal::GetCapturedStderr();
    const std::string place = "note: " + (folder.folder / "chat_template.jinja").string() + ":1: ";
    return lines.starts_with(place) ? lines.substr(place.size()) : lines;
  };
  const std::string other =
      "this chat template lays conversations out otherwise than chatml, which is taken as the task's 'chat' says\n";
  EXPECT_EQ(told(kChatMl, ChatLayout::chatml, MarkTokenizer()), "");
  EXPECT_EQ(told("x" + std::string(kChatMl), ChatLayout::chatml, MarkTokenizer()), other);
  // Another end mark, which the template shows beside chatml's.
  std::string end_mark = kChatMl;
  end_mark.replace(end_mark.find("<|im_end|>"), 10, "<eos>{# <|im_end|> #}");
  EXPECT_EQ(told(end_mark, ChatLayout::chatml, MarkTokenizer()), other);
  EXPECT_TRUE(contains(told("{{ lipsum() }}", ChatLayout::chatml, MarkTokenizer()),
                       "is not one that braid can render; chatml is taken"));
  EXPECT_EQ(ChatFolder("x" + std::string(kChatMl)).runs(MarkTokenizer(), ChatLayout::chatml), kChatMlRuns);
}

TEST(Chat, AChosenChatMlBeginsWithBosWhereTheTemplateDoes) {
  std::vector<std::string> with_bos = kChatMlRuns;
  with_bos[0].insert(2, "<bos>");
  testing::internal::CaptureStderr();
  EXPECT_EQ(ChatFolder("{{ bos_token }}" + std::string(kChatMl)).runs(MarkTokenizer(), ChatLayout::chatml), with_bos);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

TEST(Chat, WithoutATemplateALayoutMustBeChosen) {
  const std::string message = error_of([] { Chat({}, MarkTokenizer(), {}).encode(kConversation); });
  for (const char* part : {"unknown (it has no chat template)", "chatml", "llama3", "scripts/pretokenize.py"})
    EXPECT_PRED2(contains, message, part);
}

TEST(Chat, ALayoutNeedsItsTokens) {
  expect_error([] { ChatFolder().runs(MarkTokenizer(), ChatLayout::llama3); },
               "the tokenizer has no <|start_header_id|>, which the llama3 layout needs");
}

TEST(FolderChat, IsWhatTransformersTakes) {
  const TestFolder folder;
  const MarkTokenizer tokenizer;
  const auto text = [&] { return read_folder_chat(folder.path(), tokenizer).text; };
  EXPECT_EQ(text(), "");
  folder.write("tokenizer_config.json", R"({"chat_template": "one"})");
  EXPECT_EQ(text(), "one");
  folder.write("tokenizer_config.json", R"({"chat_template": [{"name": "tool_use", "template": "no"},
    {"name": "default", "template": "two"}]})");
  EXPECT_EQ(text(), "two");
  folder.write("tokenizer_config.json", R"({"chat_template": [{"name": "rag", "template": "no"}]})");
  expect_error(text, "tokenizer_config.json:1: of several chat templates none is named default");
  folder.write("chat_template.jinja", "three");
  EXPECT_EQ(text(), "three");
}

TEST(FolderChat, SpecialTokensAreTheFilesElseTheTokenizers) {
  const TestFolder folder;
  const auto bos = [&](const std::string& settings, const MarkTokenizer& tokenizer) {
    folder.write("tokenizer_config.json", settings);
    const FolderChat chat = read_folder_chat(folder.path(), tokenizer);
    const jinja::Value* found = jinja::find_field(chat.special_tokens, "bos_token");
    return found ? *found->as_text() : "none";
  };
  EXPECT_EQ(bos(R"({"bos_token": "x", "add_bos_token": true})", MarkTokenizer()), "x");
  EXPECT_EQ(bos(R"({"bos_token": {"content": "y"}})", MarkTokenizer()), "y");
  EXPECT_EQ(bos(R"({"bos_token": null})", MarkTokenizer()), "none");
  EXPECT_EQ(bos("{}", MarkTokenizer()), "<bos>");
  EXPECT_EQ(bos("{}", MarkTokenizer({"unheard", "of"})), "none");
  folder.write("chat_template.jinja", "{{ pad_token }}");
  expect_error([&] { bos("{}", MarkTokenizer()); }, "writes pad_token, whose name");
  EXPECT_EQ(bos(R"({"pad_token": null})", MarkTokenizer()), "<bos>");
  folder.write("chat_template.jinja", "{{ bos_token }}");
  expect_error([&] { bos("{}", MarkTokenizer({"unheard", "of"})); }, "writes bos_token, whose name");
}

TEST(FolderChat, ATemplateThatIsNotRenderedIsToldOnceWithItsFile) {
  const ChatFolder folder("a\n{{ 1 | wordwrap }}");
  const std::filesystem::path rows =
      folder.folder.write("rows.jsonl", R"({"messages": [{"role": "user", "content": "a"}]})");
  Task task;
  task.max_length = 64;
  const MarkTokenizer tokenizer;
  const std::string message = error_of([&] {
    load_dataset(rows, task, tokenizer, costmodel::builtin_backbone("tinyllama-1.1b"), folder.folder.path());
  });
  EXPECT_TRUE(message.starts_with((folder.folder / "chat_template.jinja").string() +
                                  ":2: the filter 'wordwrap' is not built in; "))
      << message;
}

}  // namespace
}  // namespace braid::workload
