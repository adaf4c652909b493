#include <bit>
#include <cstring>
#include <map>

#include "base/node.h"
#include "cli/workspace.h"

/// What TensorBoard reads of a run, held against metrics.jsonl by a reader of its own.
namespace braid::cli {
namespace {

using testing::Outcome;
using testing::read_text;
using testing::run_braid;

/// Bit by bit, as RFC 3720 has it, and masked as TensorFlow does.
std::uint32_t masked_crc(std::string_view bytes) {
  std::uint32_t crc = ~0U;
  for (const char byte : bytes) {
    crc ^= static_cast<unsigned char>(byte);
    for (int bit = 0; bit < 8; ++bit) crc = (crc & 1U) != 0 ? crc >> 1 ^ 0x82F63B78U : crc >> 1;
  }
  return std::rotr(~crc, 15) + 0xA282EAD8U;
}

template <typename Number>
Number take(std::string_view& bytes) {
  Number number{};
  EXPECT_GE(bytes.size(), sizeof number);
  std::memcpy(&number, bytes.data(), sizeof number);
  bytes.remove_prefix(sizeof number);
  return number;
}

std::uint64_t take_varint(std::string_view& bytes) {
  std::uint64_t number = 0;
  for (int shift = 0;; shift += 7) {
    const auto byte = static_cast<unsigned char>(bytes.front());
    bytes.remove_prefix(1);
    number |= std::uint64_t{byte & 0x7FU} << shift;
    if (byte < 0x80) return number;
  }
}

/// A message's fields by number: numbers as they stand, and what has a length.
std::map<std::uint64_t, std::string> fields_of(std::string_view bytes) {
  std::map<std::uint64_t, std::string> fields;
  while (!bytes.empty()) {
    const std::uint64_t key = take_varint(bytes);
    std::uint64_t size = key % 8 == 1 ? 8 : 4;
    if (key % 8 == 0) {
      fields[key / 8] = std::to_string(take_varint(bytes));
      continue;
    }
    if (key % 8 == 2) size = take_varint(bytes);
    EXPECT_LE(size, bytes.size());
    fields[key / 8] = std::string(bytes.substr(0, size));
    bytes.remove_prefix(size);
  }
  return fields;
}

class TensorBoard : public testing::Workspace {};

TEST_F(TensorBoard, ReadsWhatMetricsSay) {
  const Outcome trained = run_braid("train --quiet " + planning() + " --policy hf-peft --ranks 1 --out " + path("run"));
  ASSERT_EQ(trained.status, 0) << trained.text;
  std::map<std::string, float> told;  // by task, tag and step
  for (const std::string task : {"task0", "task1", "task2"}) {
    int files = 0;
    for (const auto& entry : std::filesystem::directory_iterator(folder / "run" / "tensorboard" / task)) {
      ++files;
      EXPECT_TRUE(entry.path().filename().string().starts_with("events.out.tfevents."));
      const std::string content = read_text(entry.path());
      bool first = true;
      for (std::string_view bytes = content; !bytes.empty(); first = false) {
        const std::string_view length = bytes.substr(0, 8);
        const auto size = take<std::uint64_t>(bytes);
        ASSERT_EQ(take<std::uint32_t>(bytes), masked_crc(length));
        const std::string_view event = bytes.substr(0, size);
        bytes.remove_prefix(size);
        ASSERT_EQ(take<std::uint32_t>(bytes), masked_crc(event));
        auto fields = fields_of(event);
        ASSERT_EQ(fields[1].size(), 8U);
        if (first) {
          EXPECT_EQ(fields[3], "brain.Event:2");
          continue;
        }
        auto value = fields_of(fields_of(fields[5])[1]);
        float number = 0;
        std::memcpy(&number, value[2].data(), sizeof number);
        told[task + " " + value[1] + " " + fields[2]] = number;
      }
    }
    EXPECT_EQ(files, 1);
  }
  std::istringstream text(read_text(folder / "run" / "metrics.jsonl"));
  std::size_t lines = 0;
  for (std::string line; std::getline(text, line); ++lines) {
    const Node node = parse_json(line, "metrics.jsonl");
    const auto key = [&](const char* tag) {
      return node.string_at("task") + " " + tag + " " + std::to_string(node.integer_at("step"));
    };
    EXPECT_FLOAT_EQ(told.at(key("loss")), static_cast<float>(node.number_at("loss")));
    EXPECT_FLOAT_EQ(told.at(key("learning_rate")), static_cast<float>(node.number_at("lr")));
    EXPECT_FLOAT_EQ(told.at(key("gradient_norm")), static_cast<float>(node.number_at("grad_norm")));
    EXPECT_GT(told.at(key("data_tokens_per_second")), 0);
  }
  EXPECT_EQ(told.size(), 4 * lines);
}

}  // namespace
}  // namespace braid::cli
