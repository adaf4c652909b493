#pragma once

#include <functional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/node.h"
#include "workload/sample.h"

namespace braid::workload {

/// "0:<bos>a" "1:b<eos>": runs of tokens and what the loss of each counts; "|:" where a pair's rejected sequence
/// begins.
inline std::vector<std::string> runs_of(const Sample& sample, const std::function<std::string(std::int32_t)>& text_of) {
  std::vector<std::string> runs;
  for (std::size_t i = 0; i < sample.tokens.size(); ++i) {
    const bool learned = sample.labels[i] != kUnsupervised;
    if (learned) {
      EXPECT_EQ(sample.labels[i], sample.tokens[i]);
    }
    if (i > 0 && static_cast<std::int64_t>(i) == sample.chosen) runs.push_back("|:");
    const std::string mark = learned ? fmt::format("{}:", sample.weight(i)) : "0:";
    if (runs.empty() || !runs.back().starts_with(mark)) runs.push_back(mark);
    runs.back() += text_of(sample.tokens[i]);
  }
  return runs;
}

/// The same as a table writes them: [["<bos>a", 0], ["b<eos>", 1], ["", "|"], ...] of each sample.
inline std::vector<std::vector<std::string>> expected_runs(const Node& samples) {
  std::vector<std::vector<std::string>> all;
  for (const Node& sample : samples.items) {
    std::vector<std::string>& runs = all.emplace_back();
    for (const Node& run : sample.items) runs.push_back(run.items[1].text + ":" + run.items[0].text);
  }
  return all;
}

}  // namespace braid::workload
