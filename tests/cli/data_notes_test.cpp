#include "base/utf8.h"
#include "cli/workspace.h"

// What reading leaves out of data is said once, however many processes read it.
namespace braid::cli {
namespace {

using testing::run_braid;
using testing::write_text;

class DataNotes : public testing::Workspace {
 protected:
  /// Data of the first task, whose samples may have 16 tokens.
  void write_rows(const std::string& rows) {
    write_text(folder / "data0.jsonl", rows);
    std::string text = workload();
    text.insert(text.find("    max_length: 16"), "    on_too_long: truncate\n");
    write_text(folder / "workload.yaml", text);
  }

  static std::string row(int tokens, int learned_from, const std::string& more = "") {
    std::string ids, labels;
    for (int t = 0; t < tokens; ++t) {
      ids += (t == 0 ? "" : ", ") + std::to_string(t);
      labels += (t == 0 ? "" : ", ") + std::to_string(t < learned_from ? -100 : t);
    }
    return "{\"input_ids\": [" + ids + "], \"labels\": [" + labels + "]" + more + "}\n";
  }

  static std::ptrdiff_t times(const std::string& text, const std::string& part) {
    std::ptrdiff_t count = 0;
    for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
    return count;
  }
};

TEST_F(DataNotes, AreSaidOnceByPlanAndByRanksThatTrain) {
  write_rows(row(9, 2, ", \"id\": 1") + row(20, 2) + row(20, 18) + row(20, 18, ", \"text\": \"x\""));
  const std::string cut =
      "task0: of 4 samples 1 were cut to max_length 16 and 2 dropped, of which the cut left nothing to learn\n";
  const std::string unread = "task0: columns that are not read: id, text\n";
  const std::string chosen = "task0: rows of two kinds are read as TRL reads them: input_ids, not text\n";
  for (const char* command : {"plan --ranks 1 --out ", "train --ranks 1 --out ", "train --ranks 2 --out "}) {
    const Outcome outcome = run_braid(std::string(command) + path("out") + " --overwrite " + planning());
    EXPECT_EQ(outcome.status, 0) << outcome.text;
    for (const std::string& note : {cut, unread, chosen}) EXPECT_EQ(times(outcome.text, note), 1) << outcome.text;
    EXPECT_EQ(times(outcome.text, "task1: ") + times(outcome.text, "columns"), 1) << outcome.text;
    std::filesystem::remove_all(folder / "out");
  }
}

TEST_F(DataNotes, DataOfWhichNothingIsLeftToLearnIsRefused) {
  write_rows(row(20, 18) + row(30, 16));
  expect_bad_input("plan " + planning() + " --out " + path("out"),
                   "data0.jsonl:1: of no sample is there anything to learn in the first 16 tokens; raise max_length");
}

TEST_F(DataNotes, ErrorsAreUtf8WhateverTheDataHolds) {
  for (const char* rows : {"{\"text\": \"\xE9\"}\n", "\x1F\x8B\x08\xFF", "{\"\xFF\": 1}", "\xC3"}) {
    write_rows(rows);
    expect_bad_input("plan " + planning() + " --out " + path("out"), "data0.jsonl:1: ");
    EXPECT_EQ(find_invalid_utf8(run_braid("plan " + planning()).text), std::string_view::npos);
  }
}

}  // namespace
}  // namespace braid::cli
