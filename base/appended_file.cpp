#include "base/appended_file.h"

#include <cerrno>

#include <fcntl.h>
#include <unistd.h>

namespace braid {
namespace {

bool write_all(int file, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(file, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

}  // namespace

AppendedFile::AppendedFile(std::filesystem::path path) : path_(std::move(path)) {
  std::error_code missing;
  const std::uintmax_t size = std::filesystem::file_size(path_, missing);
  size_ = missing ? 0 : static_cast<std::int64_t>(size);
}

bool AppendedFile::append(std::string_view bytes) {
  waiting_ += bytes;
  if (waiting_.empty()) return true;
  const int file = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
  if (file < 0) return false;
  bool whole = ::lseek(file, size_, SEEK_SET) == size_ && write_all(file, waiting_);
  // What came to be there of it is taken away again.
  if (!whole && ::ftruncate(file, size_) != 0) errno = 0;
  whole = ::close(file) == 0 && whole;
  if (!whole) return false;
  size_ += static_cast<std::int64_t>(waiting_.size());
  waiting_.clear();
  return true;
}

}  // namespace braid
