#include "exec/files/safetensors.h"

#include <algorithm>
#include <ostream>
#include <set>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/node.h"
#include "exec/files/safetensors_header.h"

namespace braid::exec {
namespace {

using Shape = std::vector<std::int64_t>;

constexpr std::size_t kBlockBytes = std::size_t{1} << 20;
constexpr std::string_view kIndexName = "model.safetensors.index.json";

/// Which shard each tensor is in, as the index says.
std::vector<std::pair<std::string, std::filesystem::path>> read_index(const std::filesystem::path& index) {
  const Node root = read_json(index);
  const Node& map = root.at("weight_map");
  if (!map.is_map() || map.fields.empty()) throw map.error("'weight_map' names no tensors", std::string(kFetchAgain));
  std::vector<std::pair<std::string, std::filesystem::path>> places;
  for (const auto& [name, node] : map.fields) {
    const std::filesystem::path shard = node.as_string("weight_map");
    if (shard.empty() || shard != shard.filename() || shard == "." || shard == "..") {
      throw node.error(
          fmt::format("the shard {} of tensor {} is not a file's name", in_quotes(shard.string()), in_quotes(name)),
          std::string(kFetchAgain));
    }
    std::error_code ignored;
    if (!std::filesystem::is_regular_file(index.parent_path() / shard, ignored)) {
      throw node.error(fmt::format("the shard {} of tensor {} is missing", in_quotes(shard.string()), in_quotes(name)),
                       "fetch that file too");
    }
    places.emplace_back(name, index.parent_path() / shard);
  }
  return places;
}

std::string listed(const std::vector<std::string>& names) {
  constexpr std::size_t kMost = 8;
  std::string text;
  for (std::size_t i = 0; i < std::min(kMost, names.size()); ++i) text += (i == 0 ? "" : ", ") + in_quotes(names[i]);
  if (names.size() > kMost) text += fmt::format(" and {} more", names.size() - kMost);
  return text;
}

}  // namespace

SafetensorsFolder SafetensorsFolder::open(const std::filesystem::path& folder) {
  SafetensorsFolder result(folder);
  std::error_code ignored;
  if (!std::filesystem::is_directory(folder, ignored))
    throw broken(folder, "no such folder", "give a Hugging Face folder");
  const std::filesystem::path index = folder / kIndexName;
  if (!std::filesystem::exists(index, ignored)) {
    const std::filesystem::path whole = folder / "model.safetensors";
    if (!std::filesystem::exists(whole, ignored)) {
      throw broken(folder, fmt::format("holds neither model.safetensors nor {}", kIndexName),
                   "give a folder with its weights as safetensors");
    }
    result.add_file(whole);
    return result;
  }
  const auto places = read_index(index);
  std::set<std::filesystem::path> shards;
  for (const auto& [name, shard] : places) shards.insert(shard);
  for (const std::filesystem::path& shard : shards) result.add_file(shard);
  for (const auto& [name, shard] : places) {
    const TensorInfo* tensor = result.find(name);
    if (!tensor || tensor->file != shard) {
      throw broken(index, fmt::format("tensor {} is not in {} as it says", in_quotes(name), shard.filename().string()));
    }
  }
  return result;
}

SafetensorsFolder SafetensorsFolder::open_file(const std::filesystem::path& file) {
  SafetensorsFolder result(file);
  result.add_file(file);
  return result;
}

void SafetensorsFolder::add_file(const std::filesystem::path& file) {
  for (TensorInfo& tensor : read_tensors(file)) {
    const std::string name = tensor.name;
    const auto [place, fresh] = tensors_.emplace(name, std::move(tensor));
    if (!fresh) {
      throw broken(file,
                   fmt::format("tensor {} is also in {}", in_quotes(name), place->second.file.filename().string()));
    }
  }
}

const TensorInfo* SafetensorsFolder::find(std::string_view name) const {
  const auto found = tensors_.find(name);
  return found == tensors_.end() ? nullptr : &found->second;
}

std::vector<std::string> SafetensorsFolder::names() const {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : tensors_) names.push_back(name);
  return names;
}

void SafetensorsFolder::require(std::span<const std::string> names) const {
  std::vector<std::string> missing;
  for (const std::string& name : names) {
    if (!find(name)) missing.push_back(name);
  }
  if (missing.empty()) return;
  const std::string what = names.size() == 1 ? fmt::format("tensor {} is missing", listed(missing))
                                             : fmt::format("{} of {} tensors are missing: {}", missing.size(),
                                                           names.size(), listed(missing));
  throw broken(source_, what, fmt::format("there are: {}", tensors_.empty() ? "none" : listed(this->names())));
}

const TensorInfo& SafetensorsFolder::checked(std::string_view name, const Shape& expected_shape) const {
  const TensorInfo* tensor = find(name);
  if (!tensor) {
    const std::string wanted(name);
    require({&wanted, 1});
  }
  if (tensor->shape != expected_shape) {
    throw broken(
        tensor->file,
        fmt::format("tensor '{}' is {}, {} was expected", name, describe(tensor->shape), describe(expected_shape)),
        "give the weights that belong to this configuration");
  }
  return *tensor;
}

namespace {

void check_floats(const TensorInfo& tensor) {
  if (tensor.type == DataType::f32 || tensor.type == DataType::f16 || tensor.type == DataType::bf16) return;
  throw broken(tensor.file, fmt::format("tensor {} is {}", in_quotes(tensor.name), type_of(tensor)),
               "give weights of F32, F16 or BF16");
}

/// Whether two runs of as many bytes are the same.
bool same_bytes(const TensorInfo& one, const TensorInfo& other) {
  const InputFile first(one.file), second(other.file);
  std::vector<std::byte> a(kBlockBytes), b(kBlockBytes);
  for (std::int64_t done = 0; done < one.bytes;) {
    const auto count = static_cast<std::size_t>(std::min<std::int64_t>(one.bytes - done, kBlockBytes));
    first.read(one.offset + done, std::span(a).first(count));
    second.read(other.offset + done, std::span(b).first(count));
    if (!std::equal(a.begin(), a.begin() + static_cast<std::ptrdiff_t>(count), b.begin())) return false;
    done += static_cast<std::int64_t>(count);
  }
  return true;
}

}  // namespace

bool SafetensorsFolder::same_numbers(std::string_view one, std::string_view other) const {
  const TensorInfo *first = find(one), *second = find(other);
  if (!first || !second || first->shape != second->shape) return false;
  check_floats(*first);
  check_floats(*second);
  if (first->type == second->type && same_bytes(*first, *second)) return true;
  return first->type != second->type && read_f32(one, first->shape) == read_f32(other, first->shape);
}

std::vector<float> SafetensorsFolder::read_f32(std::string_view name, const Shape& expected_shape) const {
  const TensorInfo& tensor = checked(name, expected_shape);
  check_floats(tensor);
  std::vector<float> numbers(static_cast<std::size_t>(tensor.bytes / bytes_per_number(tensor.type)));
  read_f32_into(name, expected_shape, numbers);
  return numbers;
}

void SafetensorsFolder::read_f32_into(std::string_view name, const Shape& expected_shape,
                                      std::span<float> target) const {
  const TensorInfo& tensor = checked(name, expected_shape);
  check_floats(tensor);
  const std::int64_t width = bytes_per_number(tensor.type);
  BRAID_CHECK(static_cast<std::int64_t>(target.size()) * width == tensor.bytes,
              "tensor '{}' has {} bytes, the target takes {} numbers", name, tensor.bytes, target.size());
  const InputFile input(tensor.file);
  if (tensor.type == DataType::f32) return input.read(tensor.offset, std::as_writable_bytes(target));
  std::vector<std::byte> block(std::min(kBlockBytes, static_cast<std::size_t>(tensor.bytes)));
  for (std::int64_t offset = tensor.offset; !target.empty();) {
    const std::size_t count = std::min(target.size(), block.size() / static_cast<std::size_t>(width));
    const std::span<std::byte> part = std::span(block).first(count * static_cast<std::size_t>(width));
    input.read(offset, part);
    widen(tensor.type, part, target.first(count));
    offset += static_cast<std::int64_t>(part.size());
    target = target.subspan(count);
  }
}

std::vector<std::int32_t> SafetensorsFolder::read_i32(std::string_view name, const Shape& expected_shape) const {
  const TensorInfo& tensor = checked(name, expected_shape);
  if (tensor.type != DataType::i32)
    throw broken(tensor.file, fmt::format("tensor '{}' is {}", name, type_of(tensor)), "give numbers of I32");
  std::vector<std::int32_t> numbers(static_cast<std::size_t>(tensor.bytes) / sizeof(std::int32_t));
  InputFile(tensor.file).read(tensor.offset, std::as_writable_bytes(std::span(numbers)));
  return numbers;
}

std::vector<std::int64_t> SafetensorsFolder::read_i64(std::string_view name, const Shape& expected_shape) const {
  const TensorInfo& tensor = checked(name, expected_shape);
  if (tensor.type != DataType::i64) {
    throw broken(tensor.file, fmt::format("tensor '{}' is {}", name, type_of(tensor)), "give numbers of I64");
  }
  std::vector<std::int64_t> numbers(static_cast<std::size_t>(tensor.bytes) / sizeof(std::int64_t));
  InputFile(tensor.file).read(tensor.offset, std::as_writable_bytes(std::span(numbers)));
  return numbers;
}

namespace {

std::string header_of(std::span<const NamedTensor> tensors, DataType type) {
  nlohmann::ordered_json header;
  header["__metadata__"] = nlohmann::ordered_json::object({{"format", "pt"}});
  std::int64_t end = 0;
  for (const NamedTensor& tensor : tensors) {
    const std::int64_t begin = end;
    std::int64_t numbers = 1;
    for (const std::int64_t extent : tensor.shape) numbers *= extent;
    const bool whole = !tensor.integers.empty();
    const std::size_t given = whole ? tensor.integers.size() : tensor.data.size();
    BRAID_CHECK(numbers == static_cast<std::int64_t>(given), "tensor '{}' of shape {} has {} numbers", tensor.name,
                describe(tensor.shape), given);
    const DataType stored = whole ? DataType::i32 : type;
    BRAID_CHECK(!header.contains(tensor.name), "tensor '{}' is given twice", tensor.name);
    end += numbers * bytes_per_number(stored);
    header[tensor.name] = {{"dtype", dtype_name(stored)}, {"shape", tensor.shape}, {"data_offsets", {begin, end}}};
  }
  std::string text = header.dump();
  text.append((kLengthBytes - text.size() % kLengthBytes) % kLengthBytes, ' ');
  return text;
}

void write_numbers(std::ostream& out, std::span<const float> numbers, DataType type) {
  const auto width = static_cast<std::size_t>(bytes_per_number(type));
  std::vector<std::byte> block(std::min(kBlockBytes, numbers.size() * width));
  while (!numbers.empty()) {
    const std::size_t count = std::min(numbers.size(), block.size() / width);
    narrow(type, numbers.first(count), std::span(block).first(count * width));
    out.write(reinterpret_cast<const char*>(block.data()), static_cast<std::streamsize>(count * width));
    numbers = numbers.subspan(count);
  }
}

}  // namespace

void write_safetensors(const std::filesystem::path& file, std::span<const NamedTensor> tensors, DataType type) {
  const std::string header = header_of(tensors, type);
  write_file(file, [&](std::ostream& out) {
    const std::uint64_t length = header.size();
    out.write(reinterpret_cast<const char*>(&length), sizeof length);
    out.write(header.data(), static_cast<std::streamsize>(header.size()));
    for (const NamedTensor& tensor : tensors) {
      write_numbers(out, tensor.data, type);
      out.write(reinterpret_cast<const char*>(tensor.integers.data()),
                static_cast<std::streamsize>(tensor.integers.size_bytes()));
    }
  });
}

}  // namespace braid::exec
