#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "exec/data_type.h"

namespace braid::exec {

/// Where a tensor's numbers stand: row-major, little-endian, `bytes` from byte `offset` of `file`.
struct TensorInfo {
  std::string name;
  DataType type = DataType::f32;  ///< unknown for one that braid cannot read, which is no fault while nobody needs it
  std::string dtype;              ///< as the file says it
  std::vector<std::int64_t> shape;
  std::filesystem::path file;
  std::int64_t offset = 0;
  std::int64_t bytes = 0;
};

/// The tensors of a safetensors file, or of all the shards of a Hugging Face folder.
///
/// Opening reads and checks every header: tensors must lie end to end and fill their file, as the format asks. Reading
/// takes no more memory than the tensor and a small block, opens the file anew, and may be done from several threads.
/// Throws Error "FILE: what; remedy" for whatever is broken.
class SafetensorsFolder {
 public:
  /// All shards that `folder`/model.safetensors.index.json names where there is one, else `folder`/model.safetensors.
  static SafetensorsFolder open(const std::filesystem::path& folder);
  static SafetensorsFolder open_file(const std::filesystem::path& file);

  /// Null when there is none.
  const TensorInfo* find(std::string_view name) const;
  /// What was opened.
  const std::filesystem::path& source() const { return source_; }
  /// Sorted.
  std::vector<std::string> names() const;
  /// Throws Error that lists which of `names` are missing.
  void require(std::span<const std::string> names) const;

  /// Numbers of F32, F16 or BF16. Throws Error when the tensor is missing, of another dtype or of another shape.
  std::vector<float> read_f32(std::string_view name, const std::vector<std::int64_t>& expected_shape) const;
  void read_f32_into(std::string_view name, const std::vector<std::int64_t>& expected_shape,
                     std::span<float> target) const;
  /// Whether two tensors have the same shape and the same numbers, F32, F16 or BF16.
  bool same_numbers(std::string_view one, std::string_view other) const;
  /// Numbers of I32, likewise.
  std::vector<std::int32_t> read_i32(std::string_view name, const std::vector<std::int64_t>& expected_shape) const;
  /// Numbers of I64, likewise.
  std::vector<std::int64_t> read_i64(std::string_view name, const std::vector<std::int64_t>& expected_shape) const;

 private:
  explicit SafetensorsFolder(std::filesystem::path source) : source_(std::move(source)) {}

  void add_file(const std::filesystem::path& file);
  const TensorInfo& checked(std::string_view name, const std::vector<std::int64_t>& expected_shape) const;

  std::filesystem::path source_;  // what was opened, for messages
  std::map<std::string, TensorInfo, std::less<>> tensors_;
};

/// A tensor to write; `data`, or `integers` in its place, has as many numbers as `shape`. Integers are written as I32.
struct NamedTensor {
  std::string name;
  std::vector<std::int64_t> shape;
  std::span<const float> data;
  std::span<const std::int32_t> integers = {};
};

/// Writes one safetensors file, atomically: the tensors in the order given, as `type` (f32, f16 or bf16), with the
/// metadata {"format": "pt"} that transformers and PEFT look for. Throws Failure when it cannot be written.
void write_safetensors(const std::filesystem::path& file, std::span<const NamedTensor> tensors,
                       DataType type = DataType::f32);

}  // namespace braid::exec
