#include <gtest/gtest.h>

#include "base/node.h"
#include "base/utf8.h"
#include "workload/text/dataset.h"
#include "workload/text/samples.h"
#include "workload/texts.h"

// rows.json holds files, and what is to be made of them with the byte tokenizer in the chatml layout: samples as runs
// of text with 1 where the loss is taken, or the beginning of the error behind the file's name.
// scripts/golden/check_pretokenize.py holds scripts/pretokenize.py to the same.
namespace braid::workload {
namespace {

/// What is written as one character a byte.
std::string bytes_of(const std::string& text) {
  std::string bytes;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto first = static_cast<unsigned char>(text[i]);
    bytes += first < 0x80 ? text[i] : static_cast<char>((first << 6) | (static_cast<unsigned char>(text[++i]) & 0x3F));
  }
  return bytes;
}

std::string text_of(std::int32_t token) {
  constexpr std::int32_t kBytes = 256;
  static const char* const kSpecial[] = {"<bos>", "<eos>", "<|im_start|>", "<|im_end|>"};
  return token < kBytes ? std::string(1, static_cast<char>(token)) : kSpecial[token - kBytes];
}

std::vector<std::string> strings_at(const Node& node, const char* key) {
  std::vector<std::string> strings;
  if (const Node* list = node.find(key)) {
    for (const Node& item : list->items) strings.push_back(item.text);
  }
  return strings;
}

class Rows {
 public:
  void hold(const Node& row) {
    SCOPED_TRACE(row.string_at("name"));
    Task task;
    task.max_length = row.integer_or("max_length", 512);
    const std::string policy = row.string_or("on_too_long", "error");
    task.on_too_long = policy == "drop"       ? OnTooLong::drop
                       : policy == "truncate" ? OnTooLong::truncate
                                              : OnTooLong::error;
    if (row.string_or("objective", "sft") == "dpo") task.objective.kind = ObjectiveKind::dpo;
    const std::string text = row.string_at("file");
    const std::filesystem::path file = folder_.write("rows.jsonl", row.bool_or("bytes", false) ? bytes_of(text) : text);
    if (const Node* error = row.find("error")) {
      const std::string message = error_of([&] { load_dataset(file, task, *tokenizer_, backbone_, {}); });
      EXPECT_TRUE(message.starts_with(file.string() + ":" + error->text)) << message << "\n" << error->text;
      EXPECT_EQ(find_invalid_utf8(message), std::string_view::npos);
      return;
    }
    expect_read(load_dataset(file, task, *tokenizer_, backbone_, {}), row);
  }

 private:
  static void expect_read(const Dataset& dataset, const Node& row) {
    std::vector<std::vector<std::string>> runs;
    for (const Sample& sample : dataset.samples) runs.push_back(runs_of(sample, text_of));
    EXPECT_EQ(runs, expected_runs(row.at("samples")));
    EXPECT_EQ(dataset.unread, strings_at(row, "unread"));
    EXPECT_EQ(dataset.preferred, strings_at(row, "preferred"));
    EXPECT_EQ(dataset.dropped, row.integer_or("dropped", 0));
    EXPECT_EQ(dataset.truncated, row.integer_or("truncated", 0));
    EXPECT_EQ(dataset.emptied, row.integer_or("emptied", 0));
  }

  TestFolder folder_;
  std::unique_ptr<Tokenizer> tokenizer_ = byte_tokenizer();
  costmodel::BackboneShape backbone_ = costmodel::builtin_backbone("tinyllama-1.1b");
};

TEST(Rows, AreReadAsTheTableSays) {
  Rows rows;
  const Node table = read_json(std::filesystem::path(BRAID_SOURCE_DIR) / "tests" / "workload" / "text" / "rows.json");
  ASSERT_FALSE(table.items.empty());
  for (const Node& row : table.items) rows.hold(row);
}

}  // namespace
}  // namespace braid::workload
