#pragma once

#include <cstring>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "base/random.h"
#include "exec/files/safetensors.h"
#include "support.h"

/// Files that the tests of safetensors share.
namespace braid::exec {

/// A file with this header and `data_bytes` bytes of data: 0, 1, 2, ...
inline std::string file_of(const std::string& header, std::size_t data_bytes) {
  const std::uint64_t length = header.size();
  std::string content(sizeof length, '\0');
  std::memcpy(content.data(), &length, sizeof length);
  content += header;
  for (std::size_t i = 0; i < data_bytes; ++i) content.push_back(static_cast<char>(i));
  return content;
}

/// One header entry.
inline std::string entry(const std::string& name, const std::string& dtype, const std::string& shape,
                         std::int64_t begin, std::int64_t end) {
  return fmt::format(R"("{}":{{"dtype":"{}","shape":{},"data_offsets":[{},{}]}})", name, dtype, shape, begin, end);
}

inline std::vector<float> numbers_of(std::size_t count, std::uint64_t seed) {
  RandomStream random(seed);
  std::vector<float> numbers;
  for (std::size_t i = 0; i < count; ++i) numbers.push_back(static_cast<float>(random.next_normal()));
  return numbers;
}

inline bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
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

}  // namespace braid::exec
