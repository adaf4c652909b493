#include "exec/safetensors.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <map>

#include "base/node.h"
#include "base/random.h"
#include "support.h"

namespace braid::exec {
namespace {

using Shape = std::vector<std::int64_t>;

/// A file with this header and `data_bytes` bytes of data: 0, 1, 2, ...
std::string file_of(const std::string& header, std::size_t data_bytes) {
  const std::uint64_t length = header.size();
  std::string content(sizeof length, '\0');
  std::memcpy(content.data(), &length, sizeof length);
  content += header;
  for (std::size_t i = 0; i < data_bytes; ++i) content.push_back(static_cast<char>(i));
  return content;
}

/// One header entry.
std::string entry(const std::string& name, const std::string& dtype, const std::string& shape, std::int64_t begin,
                  std::int64_t end) {
  return fmt::format(R"("{}":{{"dtype":"{}","shape":{},"data_offsets":[{},{}]}})", name, dtype, shape, begin, end);
}

std::vector<float> numbers_of(std::size_t count, std::uint64_t seed) {
  RandomStream random(seed);
  std::vector<float> numbers;
  for (std::size_t i = 0; i < count; ++i) numbers.push_back(static_cast<float>(random.next_normal()));
  return numbers;
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

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

/// Opening a single file with this content fails with `parts` in the message.
template <typename... Parts>
void refused(const std::string& content, const Parts&... parts) {
  const TestFolder folder;
  folder.write("f", content);
  expect_error([&] { SafetensorsFolder::open_file(folder / "f"); }, (folder / "f").string() + ":", parts..., "; ");
}

void header_refused(const std::string& header, std::size_t data_bytes, const std::string& what) {
  refused(file_of(header, data_bytes), what);
}

TEST(Safetensors, BrokenHeadsAreRefused) {
  refused("", "has 0 bytes, too few");
  refused("1234567", "has 7 bytes, too few");
  refused(std::string("\x05\0\0\0\0\0\0\0{}", 10), "the header claims 5 bytes, 2 are there");
  refused(std::string(8, '\xFF') + "{}", "the header claims 18446744073709551615 bytes, 2 are there");
  refused("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n", "is a Git LFS pointer", "git lfs pull");
  header_refused("", 0, "not valid JSON");
  header_refused("{\"a\":", 0, "not valid JSON");
  header_refused(std::string(10, '\0'), 0, "not valid JSON");
  header_refused(std::string(100000, '['), 0, "nested too deeply");
  header_refused("[1]", 0, "the header is not a JSON object");
  header_refused("null", 0, "the header is not a JSON object");
  header_refused(R"({"a":7})", 0, "tensor 'a' is not described by a map");
}

TEST(Safetensors, BrokenEntriesAreRefused) {
  header_refused(R"({"a":{"shape":[1],"data_offsets":[0,4]}})", 4, "'dtype' is missing");
  header_refused(R"({"a":{"dtype":"F32","data_offsets":[0,4]}})", 4, "'shape' is missing");
  header_refused(R"({"a":{"dtype":"F32","shape":[1]}})", 4, "'data_offsets' is missing");
  header_refused(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4]}})", 4, "has 1 data_offsets in place of 2");
  header_refused("{" + entry("a", "F4", "[1]", 0, 4) + "}", 4,
                 "tensor 'a' has the unknown dtype 'F4'; known: F64, F32");
  header_refused("{" + entry("a", "F32", "[-1]", 0, 4) + "}", 4, "'shape' is '-1'");
  header_refused("{" + entry("a", "F32", "[1.5]", 0, 4) + "}", 4, "'shape' is '1.5'");
  header_refused("{" + entry("a", "F32", "7", 0, 4) + "}", 4, "'shape' is '7'; give a list");
  header_refused("{" + entry("a", "F32", "[1]", -4, 0) + "}", 4, "'data_offsets' is '-4'");
  header_refused("{" + entry("a", "F32", "[1]", 4, 0) + "}", 4, "tensor 'a' lies at bytes 4..0, the file holds 4");
  header_refused("{" + entry("a", "F32", "[1]", 4, 8) + "}", 4, "tensor 'a' lies at bytes 4..8, the file holds 4");
  header_refused("{" + entry("a", "F32", "[2]", 0, 4) + "}", 4,
                 "tensor 'a' has 4 bytes, not what [2] numbers of F32 take");
  header_refused("{" + entry("a", "BF16", "[1]", 0, 4) + "}", 4,
                 "tensor 'a' has 4 bytes, not what [1] numbers of BF16 take");
  header_refused("{" + entry("a", "F32", "[4294967296,4294967296]", 0, 4) + "}", 4,
                 "the shape [4294967296, 4294967296] is too large");
  header_refused("{" + entry("a", "F32", "[4611686018427387904]", 0, 0) + "}", 0,
                 "not what [4611686018427387904] numbers of F32 take");
  header_refused("{" + entry("a", "F32", "[1]", 0, 4) + "," + entry("a", "F32", "[1]", 4, 8) + "}", 8,
                 "key 'a' is given twice");
}

TEST(Safetensors, TensorsLieEndToEnd) {
  const auto two = [](std::int64_t a_begin, std::int64_t a_end, std::int64_t b_begin, std::int64_t b_end) {
    const auto shape = [](std::int64_t bytes) { return fmt::format("[{}]", bytes); };
    return "{" + entry("a", "U8", shape(a_end - a_begin), a_begin, a_end) + "," +
           entry("b", "U8", shape(b_end - b_begin), b_begin, b_end) + "}";
  };
  header_refused(two(0, 4, 2, 8), 8, "tensors 'a' and 'b' overlap");
  header_refused(two(0, 8, 0, 8), 8, "tensors 'a' and 'b' overlap");
  header_refused(two(4, 8, 0, 5), 8, "tensors 'b' and 'a' overlap");
  header_refused(two(0, 4, 5, 8), 8, "1 bytes before tensor 'b' belong to none");
  header_refused(two(1, 4, 4, 8), 8, "1 bytes before tensor 'a' belong to none");
  header_refused(two(0, 4, 4, 8), 9, "1 bytes at the end belong to no tensor");
  const TestFolder folder;
  folder.write("f", file_of(two(4, 8, 0, 4), 8));
  EXPECT_EQ(SafetensorsFolder::open_file(folder / "f").names().size(), 2U) << "any order will do";
}

TEST(Safetensors, NamesInMessagesStayOnOneLine) {
  header_refused(R"({"a\nb":7})", 0, R"(tensor 'a\nb' is not described)");
}

TEST(Safetensors, FilesThatAreNotThereAreRefused) {
  const TestFolder folder;
  expect_error([&] { SafetensorsFolder::open_file(folder / "none"); }, "none: cannot be read (No such file");
  expect_error([&] { SafetensorsFolder::open_file(folder.path()); }, folder.path().string() + ": is not a file; ");
  expect_error([&] { SafetensorsFolder::open(folder / "none"); }, "none: no such folder; ");
  expect_error([&] { SafetensorsFolder::open(folder.path()); },
               "holds neither model.safetensors nor model.safetensors.index.json; ");
}

/// Two shards with an index over them; the tests then spoil one thing.
class ShardedFolder {
 public:
  ShardedFolder() {
    const std::vector<float> numbers = numbers_of(4, 7);
    write_safetensors(folder_ / "one.safetensors",
                      std::vector<NamedTensor>{{"a", {4}, numbers}, {"b", {2}, std::span(numbers).first(2)}});
    write_safetensors(folder_ / "two.safetensors", std::vector<NamedTensor>{{"c", {1}, std::span(numbers).first(1)}});
    index({{"a", "one.safetensors"}, {"b", "one.safetensors"}, {"c", "two.safetensors"}});
  }

  void index(const std::map<std::string, std::string>& map) const {
    std::string text;
    for (const auto& [name, shard] : map)
      text += fmt::format("{}\n    \"{}\": \"{}\"", text.empty() ? "" : ",", name, shard);
    folder_.write("model.safetensors.index.json", "{\n  \"metadata\": {},\n  \"weight_map\": {" + text + "\n  }\n}\n");
  }
  void write(const std::string& name, const std::string& content) const { folder_.write(name, content); }
  std::filesystem::path operator/(const std::string& name) const { return folder_ / name; }
  SafetensorsFolder open() const { return SafetensorsFolder::open(folder_.path()); }

 private:
  TestFolder folder_;
};

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

TEST(Safetensors, BrokenIndicesAreRefused) {
  const ShardedFolder folder;
  const auto refuses = [&](const std::string& what) {
    expect_error([&] { folder.open(); }, "model.safetensors.index.json:", what, "; ");
  };
  folder.index({{"a", "one.safetensors"}, {"d", "three.safetensors"}});
  refuses("5: the shard 'three.safetensors' of tensor 'd' is missing; fetch that file too");
  folder.index({{"a", "one.safetensors"}, {"d", "two.safetensors"}});
  refuses("tensor 'd' is not in two.safetensors as it says");
  folder.index({{"a", "two.safetensors"}, {"b", "one.safetensors"}});
  refuses("tensor 'a' is not in two.safetensors as it says");
  for (const char* shard : {"", ".", "..", "../one.safetensors", "/etc/passwd", "sub/one.safetensors"}) {
    folder.index({{"a", shard}});
    refuses(fmt::format("the shard '{}' of tensor 'a' is not a file's name", shard));
  }
  folder.index({{"a", std::string(5000, 'n')}});
  refuses("is missing");
  folder.index({});
  refuses("'weight_map' names no tensors");
  for (const auto& [content, what] :
       std::map<std::string, std::string>{{"{}", "'weight_map' is missing"},
                                          {"{", "not valid JSON"},
                                          {R"({"weight_map": [1]})", "names no tensors"},
                                          {R"({"weight_map": {"a": [1]}})", "'weight_map' is a list"}}) {
    folder.write("model.safetensors.index.json", content);
    refuses(what);
  }
}

TEST(Safetensors, ATensorInTwoShardsIsRefused) {
  const ShardedFolder folder;
  const std::vector<float> number = {1.0F};
  write_safetensors(folder / "two.safetensors", std::vector<NamedTensor>{{"c", {1}, number}, {"a", {1}, number}});
  expect_error([&] { folder.open(); }, "two.safetensors: tensor 'a' is also in one.safetensors; ");
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

/// Opens and reads all there is; a spoilt file may do so, or throw Error.
bool survives(const std::filesystem::path& file) {
  try {
    const SafetensorsFolder tensors = SafetensorsFolder::open_file(file);
    for (const std::string& name : tensors.names()) {
      const TensorInfo& info = *tensors.find(name);
      if (info.type == DataType::i64) {
        tensors.read_i64(name, info.shape);
      } else {
        tensors.read_f32(name, info.shape);
      }
    }
    return true;
  } catch (const Error& failure) {
    EXPECT_FALSE(contains(failure.what(), "\n")) << failure.what();
    return false;
  }
}

TEST(Safetensors, SpoiltFilesThrowErrorOrReadButNeverCrash) {
  const TestFolder folder;
  const std::string good =
      file_of(R"({"__metadata__":{"format":"pt"},)" + entry("layers.0.weight", "F32", "[2,3]", 0, 24) + "," +
                  entry("layers.0.bias", "BF16", "[3]", 24, 30) + "," + entry("ids", "I64", "[1]", 30, 38) + "," +
                  entry("half", "F16", "[1,2]", 38, 42) + "}",
              42);
  ASSERT_TRUE(survives(folder.write("f", good)));
  RandomStream random(9);
  constexpr std::string_view kLetters = "0123456789-[]{}\",:eE.\\nu FI";
  int read = 0, thrown = 0;
  for (int i = 0; i < 4000; ++i) {
    std::string bad = good;
    const int edits = 1 + static_cast<int>(random.next_below(3));
    for (int edit = 0; edit < edits && !bad.empty(); ++edit) {
      const std::size_t at = random.next_below(bad.size());
      switch (random.next_below(6)) {
        case 0:
          bad[at] = static_cast<char>(random.next_below(256));
          break;
        case 1:
          bad[at] = static_cast<char>(bad[at] ^ (1 << random.next_below(8)));
          break;
        case 2:
          bad.resize(at);
          break;
        case 3:
          bad.erase(at, 1);
          break;
        case 4:
          bad.insert(at, 1, kLetters[random.next_below(kLetters.size())]);
          break;
        default:
          bad[at] = kLetters[random.next_below(kLetters.size())];
          break;
      }
    }
    ++(survives(folder.write("f", bad)) ? read : thrown);
  }
  EXPECT_GT(read, 100) << "flips in the data alone do no harm";
  EXPECT_GT(thrown, 1000);
}

TEST(Safetensors, EveryTruncationThrows) {
  const TestFolder folder;
  const std::string good = file_of("{" + entry("a", "F32", "[2]", 0, 8) + "}", 8);
  for (std::size_t size = 0; size < good.size(); ++size)
    EXPECT_FALSE(survives(folder.write("f", good.substr(0, size)))) << size;
}

TEST(Safetensors, AFileCutWhileItIsReadIsAnError) {
  const TestFolder folder;
  const std::string good = file_of("{" + entry("a", "F32", "[2]", 0, 8) + "}", 8);
  const SafetensorsFolder file = SafetensorsFolder::open_file(folder.write("f", good));
  folder.write("f", good.substr(0, good.size() - 1));
  expect_error([&] { file.read_f32("a", {2}); }, "f: the file became shorter while it was read; ");
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
