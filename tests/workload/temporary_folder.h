#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include <gtest/gtest.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"
#include "workload/tokenizer.h"

namespace braid::workload {

/// A folder of the test's own, gone when it ends.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    static int count = 0;
    path_ = std::filesystem::temp_directory_path() / fmt::format("braid_workload_test.{}.{}", ::getpid(), count++);
    std::filesystem::create_directories(path_);
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }
  const std::filesystem::path& path() const { return path_; }

  std::filesystem::path write(const std::string& name, std::string_view content) const {
    write_file(path_ / name, content);
    return path_ / name;
  }

 private:
  std::filesystem::path path_;
};

/// The message of the Error that `action` throws; empty, and a failed test, when it throws none.
template <typename Action>
std::string message_of(const Action& action) {
  try {
    action();
  } catch (const Error& failure) {
    return failure.what();
  }
  ADD_FAILURE() << "no Error";
  return "";
}

inline bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

inline std::vector<std::int32_t> bytes(std::string_view text) {
  std::vector<std::int32_t> ids;
  for (const char byte : text) ids.push_back(static_cast<unsigned char>(byte));
  return ids;
}

/// The tokenizer of a new backbone: bytes, BOS 256, EOS 257, <|im_start|> 258, <|im_end|> 259.
inline std::unique_ptr<Tokenizer> byte_tokenizer() {
  const TemporaryFolder folder;
  return make_byte_tokenizer(folder.write("braid_tokenizer.json", byte_tokenizer_json()));
}

}  // namespace braid::workload
