#include "exec/files/safetensors_files.h"

namespace braid::exec {
namespace {

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

TEST(BrokenSafetensors, BrokenHeadsAreRefused) {
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

TEST(BrokenSafetensors, BrokenEntriesAreRefused) {
  header_refused(R"({"a":{"shape":[1],"data_offsets":[0,4]}})", 4, "'dtype' is missing");
  header_refused(R"({"a":{"dtype":"F32","data_offsets":[0,4]}})", 4, "'shape' is missing");
  header_refused(R"({"a":{"dtype":"F32","shape":[1]}})", 4, "'data_offsets' is missing");
  header_refused(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4]}})", 4, "has 1 data_offsets in place of 2");
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

TEST(BrokenSafetensors, TensorsLieEndToEnd) {
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

TEST(BrokenSafetensors, NamesInMessagesStayOnOneLine) {
  header_refused(R"({"a\nb":7})", 0, R"(tensor 'a\nb' is not described)");
}

TEST(BrokenSafetensors, FilesThatAreNotThereAreRefused) {
  const TestFolder folder;
  expect_error([&] { SafetensorsFolder::open_file(folder / "none"); }, "none: cannot be read (No such file");
  expect_error([&] { SafetensorsFolder::open_file(folder.path()); }, folder.path().string() + ": is not a file; ");
  expect_error([&] { SafetensorsFolder::open(folder / "none"); }, "none: no such folder; ");
  expect_error([&] { SafetensorsFolder::open(folder.path()); },
               "holds neither model.safetensors nor model.safetensors.index.json; ");
}

TEST(BrokenSafetensors, BrokenIndicesAreRefused) {
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

TEST(BrokenSafetensors, ATensorInTwoShardsIsRefused) {
  const ShardedFolder folder;
  const std::vector<float> number = {1.0F};
  write_safetensors(folder / "two.safetensors", std::vector<NamedTensor>{{"c", {1}, number}, {"a", {1}, number}});
  expect_error([&] { folder.open(); }, "two.safetensors: tensor 'a' is also in one.safetensors; ");
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

TEST(BrokenSafetensors, SpoiltFilesThrowErrorOrReadButNeverCrash) {
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

TEST(BrokenSafetensors, EveryTruncationThrows) {
  const TestFolder folder;
  const std::string good = file_of("{" + entry("a", "F32", "[2]", 0, 8) + "}", 8);
  for (std::size_t size = 0; size < good.size(); ++size)
    EXPECT_FALSE(survives(folder.write("f", good.substr(0, size)))) << size;
}

TEST(BrokenSafetensors, AFileCutWhileItIsReadIsAnError) {
  const TestFolder folder;
  const std::string good = file_of("{" + entry("a", "F32", "[2]", 0, 8) + "}", 8);
  const SafetensorsFolder file = SafetensorsFolder::open_file(folder.write("f", good));
  folder.write("f", good.substr(0, good.size() - 1));
  expect_error([&] { file.read_f32("a", {2}); }, "f: the file became shorter while it was read; ");
}

}  // namespace
}  // namespace braid::exec
