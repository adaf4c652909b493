#include "kernels/gpu_probe/output_file.h"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <string>

#include <unistd.h>

#include "kernels/gpu_probe/errors.h"

namespace braid::gpu_probe {

void check_output(const std::filesystem::path& path, bool overwrite) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) throw UsageError(path.string() + ": is a folder; give a file");
  if (std::filesystem::exists(path, ignored)) {
    if (!std::filesystem::is_regular_file(path, ignored))
      throw UsageError(path.string() + ": is not a plain file; give another name");
    if (!overwrite) throw UsageError(path.string() + ": exists; give another file or --overwrite");
  }
  const std::filesystem::path folder = std::filesystem::absolute(path).parent_path();
  if (!std::filesystem::is_directory(folder, ignored))
    throw UsageError(folder.string() + ": no such folder; make it, or give a file elsewhere");
  if (::access(folder.c_str(), W_OK | X_OK) != 0)
    throw UsageError(folder.string() + ": cannot be written to (" + std::strerror(errno) + "); give a file elsewhere");
}

void write_output(const std::filesystem::path& path, std::string_view content) {
  std::filesystem::path temporary = path;
  temporary += "." + std::to_string(::getpid()) + ".tmp";
  std::ofstream out(temporary, std::ios::binary | std::ios::trunc);
  out.write(content.data(), static_cast<std::streamsize>(content.size()));
  out.close();
  std::error_code reason;
  if (out) {
    std::filesystem::rename(temporary, path, reason);
    if (!reason) return;
  }
  const std::string why = reason ? reason.message() : std::strerror(errno);
  std::filesystem::remove(temporary, reason);
  throw Failure(path.string() + ": cannot be written (" + why + "); free the disk and measure again");
}

}  // namespace braid::gpu_probe
