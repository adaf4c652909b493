#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "exec/files/safetensors.h"

/// Reading of a safetensors file's head; private to safetensors.cpp.
namespace braid::exec {

/// Bytes before the header, which say how long it is.
inline constexpr std::int64_t kLengthBytes = 8;
inline constexpr std::string_view kFetchAgain = "fetch or save it again";

/// An error about a whole file.
inline Error broken(const std::filesystem::path& file, const std::string& what, std::string_view remedy = kFetchAgain) {
  return error("{}: {}; {}", file.string(), what, remedy);
}

inline std::string describe(const std::vector<std::int64_t>& shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

/// A name from a file, for messages: control characters escaped, so that they stay on one line.
inline std::string in_quotes(std::string_view name) {
  std::string text = fmt::format("{:?}", name);
  text.front() = text.back() = '\'';
  return text;
}

/// A tensor's type, for messages.
inline std::string type_of(const TensorInfo& tensor) {
  return tensor.type == DataType::unknown ? in_quotes(tensor.dtype) : tensor.dtype;
}

/// A file open for reading, its size taken once.
class InputFile {
 public:
  /// Throws Error when it is not a readable file.
  explicit InputFile(const std::filesystem::path& path);
  ~InputFile();
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  std::int64_t size() const { return size_; }
  /// Fills `target` from byte `offset` on. Throws Error when the file ends before, Failure when the disk does not
  /// answer.
  void read(std::int64_t offset, std::span<std::byte> target) const;

 private:
  std::filesystem::path path_;
  int descriptor_;
  std::int64_t size_ = 0;
};

/// The tensors of a file, in the order in which they lie. Throws Error when the file is not what the format asks.
std::vector<TensorInfo> read_tensors(const std::filesystem::path& file);

}  // namespace braid::exec
