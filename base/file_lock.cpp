#include "base/file_lock.h"

#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/error.h"

namespace braid {

FileLock::FileLock(const std::filesystem::path& path)
    : file_(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644)) {
  if (file_ < 0) throw Failure(fmt::format("{}: cannot be written ({})", path.string(), std::strerror(errno)));
  if (::flock(file_, LOCK_EX | LOCK_NB) == 0) return;
  const int reason = errno;
  ::close(file_);
  if (reason == EWOULDBLOCK)
    throw error("{}: another process is at work there; wait until it has ended, or end it",
                path.parent_path().string());
  throw Failure(fmt::format("{}: cannot be locked ({})", path.string(), std::strerror(reason)));
}

bool FileLock::held(const std::filesystem::path& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return false;
  const bool free = ::flock(file, LOCK_SH | LOCK_NB) == 0;
  ::close(file);
  return !free;
}

FileLock::~FileLock() {
  ::close(file_);
}

}  // namespace braid
