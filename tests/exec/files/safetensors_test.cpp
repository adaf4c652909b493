#include <cmath>
#include <cstring>
#include <limits>

#include "exec/files/safetensors_files.h"

namespace braid::exec {
namespace {

using Shape = std::vector<std::int64_t>;

TEST(Safetensors, WhatWasWrittenIsReadBackToTheBit) {
  const TestFolder folder;
  const std::vector<float> matrix = numbers_of(15, 1),
                           vector = {-0.0F, std::numeric_limits<float>::infinity(), 1e-45F, std::nanf("")};
  const std::vector<float> scalar = {7.0F};
  const std::vector<NamedTensor> tensors = {
      {"b", {3, 5}, matrix}, {"a.weight", {4}, vector}, {"none", {0, 9}, {}}, {"scalar", {}, scalar}};
  write_safetensors(folder / "f.safetensors", tensors);
  const SafetensorsFolder file = SafetensorsFolder::open_file(folder / "f.safetensors");
  EXPECT_EQ(file.names(), (std::vector<std::string>{"a.weight", "b", "none", "scalar"}));
  EXPECT_TRUE(same_bits(file.read_f32("b", {3, 5}), matrix));
  EXPECT_TRUE(same_bits(file.read_f32("a.weight", {4}), vector));
  EXPECT_TRUE(file.read_f32("none", {0, 9}).empty());
  EXPECT_EQ(file.read_f32("scalar", {}), scalar);
  EXPECT_EQ(file.find("b")->shape, (Shape{3, 5}));
  EXPECT_EQ(file.find("b")->type, DataType::f32);
  EXPECT_EQ(file.find("nothing"), nullptr);
}

TEST(Safetensors, TheFileIsLaidOutAsTheFormatAsks) {
  const TestFolder folder;
  const std::vector<float> numbers = numbers_of(6, 2);
  const std::vector<NamedTensor> tensors = {{"z", {2}, std::span(numbers).first(2)},
                                            {"a", {2, 2}, std::span(numbers).last(4)}};
  write_safetensors(folder / "f", tensors);
  const std::string content = read_file(folder / "f");
  std::uint64_t length = 0;
  std::memcpy(&length, content.data(), sizeof length);
  EXPECT_EQ(length % 8, 0U);
  ASSERT_EQ(content.size(), 8 + length + 6 * sizeof(float));
  std::string header = content.substr(8, length);
  header.erase(header.find_last_not_of(' ') + 1);
  EXPECT_EQ(header, R"({"__metadata__":{"format":"pt"},)" + entry("z", "F32", "[2]", 0, 8) + "," +
                        entry("a", "F32", "[2,2]", 8, 24) + "}");
  EXPECT_EQ(std::memcmp(content.data() + 8 + length, numbers.data(), 24), 0);
  write_safetensors(folder / "again", tensors);
  EXPECT_EQ(read_file(folder / "again"), content);
}

TEST(Safetensors, HalfPrecisionIsRoundedOnceAndWidenedExactly) {
  const TestFolder folder;
  // More than one block of the reader, and an odd count.
  const std::vector<float> numbers = numbers_of((std::size_t{3} << 19) + 7, 3);
  const auto count = static_cast<std::int64_t>(numbers.size());
  const std::vector<NamedTensor> tensors = {{"x", {count}, numbers}};
  for (const DataType type : {DataType::bf16, DataType::f16}) {
    write_safetensors(folder / "f", tensors, type);
    const SafetensorsFolder file = SafetensorsFolder::open_file(folder / "f");
    EXPECT_EQ(file.find("x")->type, type);
    EXPECT_EQ(file.find("x")->bytes, 2 * count);
    std::vector<float> rounded;
    for (const float number : numbers) {
      rounded.push_back(type == DataType::f16 ? f32_from_f16(f16_from_f32(number))
                                              : f32_from_bf16(bf16_from_f32(number)));
    }
    EXPECT_TRUE(same_bits(file.read_f32("x", {count}), rounded));
  }
}

TEST(Safetensors, ReadsIntoAPartOfALargerWhole) {
  const TestFolder folder;
  const std::vector<float> q = numbers_of(4, 4), k = numbers_of(2, 5);
  write_safetensors(folder / "f", std::vector<NamedTensor>{{"q", {2, 2}, q}, {"k", {1, 2}, k}});
  const SafetensorsFolder file = SafetensorsFolder::open_file(folder / "f");
  std::vector<float> stacked(6);
  file.read_f32_into("q", {2, 2}, std::span(stacked).first(4));
  file.read_f32_into("k", {1, 2}, std::span(stacked).last(2));
  EXPECT_TRUE(same_bits({stacked.begin(), stacked.begin() + 4}, q));
  EXPECT_TRUE(same_bits({stacked.begin() + 4, stacked.end()}, k));
  EXPECT_THROW(file.read_f32_into("q", {2, 2}, std::span(stacked)), InternalError);
}

TEST(Safetensors, WholeNumbersAreReadAsSuch) {
  const TestFolder folder;
  folder.write("f", file_of("{" + entry("ids", "I64", "[2,1]", 0, 16) + "}", 16));
  const SafetensorsFolder file = SafetensorsFolder::open_file(folder / "f");
  EXPECT_EQ(file.read_i64("ids", {2, 1}), (std::vector<std::int64_t>{0x0706050403020100, 0x0f0e0d0c0b0a0908}));
  expect_error([&] { file.read_f32("ids", {2, 1}); }, "f: tensor 'ids' is I64; give weights of F32, F16 or BF16");
}

TEST(Safetensors, WhatDoesNotFitIsNamedWithFileAndShapes) {
  const TestFolder folder;
  const std::vector<float> numbers = numbers_of(6, 6);
  write_safetensors(folder / "f", std::vector<NamedTensor>{{"w", {2, 3}, numbers}});
  const SafetensorsFolder file = SafetensorsFolder::open_file(folder / "f");
  const std::string path = (folder / "f").string();
  expect_error([&] { file.read_f32("w", {3, 2}); }, path + ": tensor 'w' is [2, 3], [3, 2] was expected; ");
  expect_error([&] { file.read_f32("w", {6}); }, "[2, 3], [6] was expected");
  expect_error([&] { file.read_f32("v", {6}); }, path + ": tensor 'v' is missing; there are: 'w'");
  expect_error([&] { file.read_i64("w", {2, 3}); }, path + ": tensor 'w' is F32; ");
  const std::vector<std::string> wanted = {"a", "w", "b"};
  expect_error([&] { file.require(wanted); }, path + ": 2 of 3 tensors are missing: 'a', 'b'; there are: 'w'");
  file.require(std::span(wanted).subspan(1, 1));
}

TEST(Safetensors, OnlyWhatIsReadHasToBeReadable) {
  const TestFolder folder;
  folder.write("f", file_of("{" + entry("w", "F32", "[1]", 0, 4) + "," + entry("q", "F8_E4M3", "[3]", 4, 7) + "}", 7));
  const SafetensorsFolder file = SafetensorsFolder::open_file(folder / "f");
  EXPECT_EQ(file.read_f32("w", {1}).size(), 1U);
  expect_error([&] { file.read_f32("q", {3}); }, "tensor 'q' is 'F8_E4M3'; give weights of F32, F16 or BF16");
  expect_error([&] { file.same_numbers("q", "q"); }, "tensor 'q' is 'F8_E4M3'");
}

TEST(Safetensors, SameNumbersAreThoseOfOneShapeInAnyType) {
  const TestFolder folder;
  const std::vector<float> numbers = {1, -2.5F, 0.125F, 3}, others = {1, -2.5F, 0.125F, 3.5F};
  const std::vector<NamedTensor> tensors = {
      {"a", {4}, numbers}, {"b", {4}, numbers}, {"c", {4}, others}, {"d", {2, 2}, numbers}};
  write_safetensors(folder / "f", tensors);
  const SafetensorsFolder file = SafetensorsFolder::open_file(folder / "f");
  EXPECT_TRUE(file.same_numbers("a", "b"));
  for (const char* other : {"c", "d", "none"}) EXPECT_FALSE(file.same_numbers("a", other)) << other;
}

TEST(Safetensors, ShardsReadAsOne) {
  const ShardedFolder folder;
  const SafetensorsFolder tensors = folder.open();
  EXPECT_EQ(tensors.names(), (std::vector<std::string>{"a", "b", "c"}));
  EXPECT_TRUE(same_bits(tensors.read_f32("a", {4}), numbers_of(4, 7)));
  EXPECT_EQ(tensors.read_f32("c", {1})[0], numbers_of(4, 7)[0]);
  EXPECT_EQ(tensors.find("c")->file, folder / "two.safetensors");
}

TEST(Safetensors, TheIndexGoesBeforeASingleFile) {
  const ShardedFolder folder;
  folder.write("model.safetensors", "not the weights");
  EXPECT_EQ(folder.open().names().size(), 3U);
}

TEST(Safetensors, WritingRefusesOurOwnMistakes) {
  const TestFolder folder;
  const std::vector<float> numbers = numbers_of(4, 8);
  EXPECT_THROW(write_safetensors(folder / "f", std::vector<NamedTensor>{{"a", {5}, numbers}}), InternalError);
  EXPECT_THROW(write_safetensors(folder / "f", std::vector<NamedTensor>{{"a", {4}, numbers}, {"a", {4}, numbers}}),
               InternalError);
  EXPECT_THROW(write_safetensors(folder / "f", std::vector<NamedTensor>{{"a", {4}, numbers}}, DataType::i64),
               InternalError);
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(Safetensors, ReadsWhatTransformersWrote) {
  const SafetensorsFolder sharded = SafetensorsFolder::open(golden("llama3_rope"));
  EXPECT_EQ(sharded.find("model.embed_tokens.weight")->type, DataType::bf16);
  const std::vector<float> embedding = sharded.read_f32("model.embed_tokens.weight", {160, 64});
  double squares = 0;
  for (const float number : embedding) {
    EXPECT_EQ(f32_from_bf16(bf16_from_f32(number)), number);
    squares += number * number;
  }
  EXPECT_NEAR(std::sqrt(squares / static_cast<double>(embedding.size())), 0.13, 0.01)
      << "what scripts/golden drew them with";
  EXPECT_EQ(sharded.find("lm_head.weight"), nullptr) << "the head is tied";

  const SafetensorsFolder half = SafetensorsFolder::open(golden("qwen25"));
  EXPECT_EQ(half.find("model.norm.weight")->type, DataType::f16);
  EXPECT_EQ(half.read_f32("model.layers.1.self_attn.q_proj.bias", {48}).size(), 48U);

  const SafetensorsFolder expected = SafetensorsFolder::open_file(golden("llama") / "expected.safetensors");
  for (const std::int64_t id : expected.read_i64("input_ids", {2, 37})) {
    EXPECT_GE(id, 0);
    EXPECT_LT(id, 160);
  }
  const SafetensorsFolder adapter =
      SafetensorsFolder::open_file(golden("llama") / "adapter" / "adapter_model.safetensors");
  for (const std::string& name : adapter.names())
    EXPECT_FALSE(adapter.read_f32(name, adapter.find(name)->shape).empty());
}

TEST(Safetensors, RewritingWhatTransformersWroteKeepsEveryNumber) {
  const TestFolder folder;
  const SafetensorsFolder original = SafetensorsFolder::open(golden("qwen25"));
  std::vector<std::vector<float>> data;
  for (const std::string& name : original.names()) data.push_back(original.read_f32(name, original.find(name)->shape));
  std::vector<NamedTensor> tensors;
  for (const std::string& name : original.names())
    tensors.push_back({name, original.find(name)->shape, data[tensors.size()]});
  for (const DataType type : {DataType::f16, DataType::f32}) {
    write_safetensors(folder / "f", tensors, type);
    const SafetensorsFolder copy = SafetensorsFolder::open_file(folder / "f");
    ASSERT_EQ(copy.names(), original.names());
    for (const NamedTensor& tensor : tensors) {
      EXPECT_TRUE(same_bits(copy.read_f32(tensor.name, tensor.shape), {tensor.data.begin(), tensor.data.end()}));
    }
  }
}

}  // namespace
}  // namespace braid::exec
