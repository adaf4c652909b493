#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace braid {

/// A file that lines are added to for days. What cannot be written, on a full disk say, waits and is written with what
/// comes next: no part of it is ever seen in the file. The file is open while it is written to alone.
class AppendedFile {
 public:
  /// Behind what is there; the file is made when something is added.
  explicit AppendedFile(std::filesystem::path path);

  /// False where it cannot be written now.
  bool append(std::string_view bytes);
  /// Bytes that wait.
  std::size_t waiting() const { return waiting_.size(); }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
  std::string waiting_;
  std::int64_t size_ = 0;  // of the file, as far as it is whole
};

}  // namespace braid
