#include "base/file.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <memory>
#include <vector>

#include <fcntl.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/error.h"

namespace braid {
namespace {

std::string hexadecimal(const XXH128_hash_t& hash) {
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

Failure not_written(const std::filesystem::path& path, std::string_view what, int reason) {
  return Failure(fmt::format("{}: {} ({})", path.string(), what, std::strerror(reason)));
}

/// Waits until what was written to `synced`, a file or folder, is on the disk. A file system that has no such thing is
/// taken to need none. `path` is what a Failure names.
void sync(const std::filesystem::path& synced, const std::filesystem::path& path) {
  const int file = ::open(synced.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) throw not_written(path, "cannot be written", errno);
  const int reason = ::fsync(file) == 0 ? 0 : errno;
  ::close(file);
  if (reason != 0 && reason != EINVAL && reason != ENOTSUP) throw not_written(path, "writing failed", reason);
}

}  // namespace

std::ifstream open_to_read(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  const int reason = errno;
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) throw error("{}: is a folder; give a file", path.string());
  if (!in) throw error("{}: cannot be read ({}); give a readable file", path.string(), std::strerror(reason));
  return in;
}

std::string read_file(const std::filesystem::path& path) {
  std::ifstream in = open_to_read(path);
  std::string content((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  if (in.bad()) throw error("{}: reading failed ({}); check the disk", path.string(), std::strerror(errno));
  return content;
}

void check_writable(const std::filesystem::path& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) throw error("{}: is a folder; give a file", path.string());
  // A device or pipe would be replaced by the file that is renamed to its name.
  if (std::filesystem::exists(path, ignored) && !std::filesystem::is_regular_file(path, ignored))
    throw error("{}: is not a plain file; give another name", path.string());
  std::filesystem::path folder = std::filesystem::absolute(path).parent_path();
  while (!std::filesystem::exists(folder, ignored) && folder.has_relative_path()) folder = folder.parent_path();
  if (!std::filesystem::is_directory(folder, ignored))
    throw error("{}: is not a folder, so {} cannot be written; give another path", folder.string(), path.string());
  if (::access(folder.c_str(), W_OK | X_OK) != 0)
    throw error("{}: cannot be written to ({}); give a path elsewhere", folder.string(), std::strerror(errno));
}

void write_file(const std::filesystem::path& path, std::string_view content) {
  write_file(path, [&](std::ostream& out) { out.write(content.data(), static_cast<std::streamsize>(content.size())); });
}

void write_file(const std::filesystem::path& path, const std::function<void(std::ostream&)>& write) {
  std::error_code ignored;
  check_writable(path);
  if (path.has_parent_path()) std::filesystem::create_directories(path.parent_path(), ignored);
  std::filesystem::path temporary = path;
  temporary += fmt::format(".{}.tmp", ::getpid());
  try {
    std::ofstream out(temporary, std::ios::binary | std::ios::trunc);
    if (!out) throw not_written(path, "cannot be written", errno);
    write(out);
    out.close();
    if (!out) throw not_written(path, "writing failed", errno);
    sync(temporary, path);
    if (std::rename(temporary.c_str(), path.c_str()) != 0) throw not_written(path, "cannot be written", errno);
  } catch (...) {
    std::filesystem::remove(temporary, ignored);
    throw;
  }
  sync(path.has_parent_path() ? path.parent_path() : ".", path);
}

std::string hash_file(const std::filesystem::path& path) {
  std::ifstream in = open_to_read(path);
  const std::unique_ptr<XXH3_state_t, decltype(&XXH3_freeState)> state(XXH3_createState(), &XXH3_freeState);
  XXH3_128bits_reset(state.get());
  std::vector<char> block(1 << 20);
  while (in) {
    in.read(block.data(), static_cast<std::streamsize>(block.size()));
    XXH3_128bits_update(state.get(), block.data(), static_cast<std::size_t>(in.gcount()));
  }
  return hexadecimal(XXH3_128bits_digest(state.get()));
}

std::string hash_bytes(std::string_view bytes) {
  return hexadecimal(XXH3_128bits(bytes.data(), bytes.size()));
}

}  // namespace braid
