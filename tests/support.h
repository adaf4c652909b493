#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>

#include <gtest/gtest.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"

/// What the tests of several folders share.
namespace braid {

/// A folder of the test's own, gone when it ends.
class TestFolder {
 public:
  TestFolder() {
    static int count = 0;
    path_ = std::filesystem::temp_directory_path() / fmt::format("braid_test.{}.{}", ::getpid(), count++);
    std::filesystem::create_directories(path_);
  }
  ~TestFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TestFolder(const TestFolder&) = delete;
  TestFolder& operator=(const TestFolder&) = delete;

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
std::string error_of(const Action& action) {
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

/// That `action` throws an Error of one line with all of `parts` in it.
template <typename Action, typename... Parts>
void expect_error(const Action& action, const Parts&... parts) {
  const std::string message = error_of(action);
  EXPECT_FALSE(contains(message, "\n")) << message;
  for (const std::string_view part : {std::string_view(parts)...}) EXPECT_PRED2(contains, message, part);
}

/// A folder that scripts/golden wrote; where tests run on another machine BRAID_GOLDEN says where it is.
inline std::filesystem::path golden(const std::string& name) {
  if (const char* folder = std::getenv("BRAID_GOLDEN")) return std::filesystem::path(folder) / name;
  return std::filesystem::path(BRAID_SOURCE_DIR) / "tests" / "golden" / name;
}

}  // namespace braid
