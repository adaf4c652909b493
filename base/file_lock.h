#pragma once

#include <filesystem>

namespace braid {

/// While it lives no other process has a lock on that file, which is made where it is missing. Ends with the process,
/// however that ends.
class FileLock {
 public:
  /// Throws Error where another process has it, Failure where it cannot be made.
  explicit FileLock(const std::filesystem::path& path);
  ~FileLock();
  /// Whether some process, this one too, has a lock on that file.
  static bool held(const std::filesystem::path& path);
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

 private:
  int file_;
};

}  // namespace braid
