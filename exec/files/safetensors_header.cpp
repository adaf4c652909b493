#include "exec/files/safetensors_header.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <tuple>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/node.h"

namespace braid::exec {

static_assert(std::endian::native == std::endian::little, "safetensors files are little-endian");

namespace {

using Shape = std::vector<std::int64_t>;

constexpr std::int64_t kMostHeaderBytes = 100'000'000;  // the reference reader's limit

std::string read_header(const InputFile& input, const std::filesystem::path& file) {
  constexpr std::string_view kPointer = "version https://git-lfs";
  std::string start(static_cast<std::size_t>(std::min<std::int64_t>(input.size(), kPointer.size())), '\0');
  input.read(0, std::as_writable_bytes(std::span(start)));
  if (start == kPointer) throw broken(file, "is a Git LFS pointer, not the weights", "run `git lfs pull`");
  if (input.size() < kLengthBytes) {
    throw broken(file, fmt::format("has {} bytes, too few for a safetensors file", input.size()));
  }
  std::uint64_t length = 0;
  std::memcpy(&length, start.data(), sizeof length);
  const auto rest = static_cast<std::uint64_t>(input.size() - kLengthBytes);
  if (length > rest) {
    throw broken(file,
                 fmt::format("the header claims {} bytes, {} are there (cut short, or not safetensors)", length, rest));
  }
  if (length > kMostHeaderBytes) {
    throw broken(file, fmt::format("the header claims {} bytes, more than the format's {}", length, kMostHeaderBytes));
  }
  std::string header(length, '\0');
  input.read(kLengthBytes, std::as_writable_bytes(std::span(header)));
  return header;
}

/// Numbers in a tensor of this shape. Throws Error when they are too many to count.
std::int64_t volume(const Shape& shape, const Node& node) {
  std::int64_t count = 1;
  for (const std::int64_t extent : shape) {
    if (__builtin_mul_overflow(count, extent, &count)) {
      throw node.error(fmt::format("the shape {} is too large", describe(shape)), std::string(kFetchAgain));
    }
  }
  return count;
}

/// One entry of a header. The offset is counted from the header's end, as it is written.
TensorInfo read_entry(const std::string& name, const Node& node, std::int64_t data_bytes) {
  const std::string remedy(kFetchAgain);
  const auto fault = [&](const std::string& what) {
    return node.error(fmt::format("tensor {} {}", in_quotes(name), what), remedy);
  };
  if (!node.is_map()) throw fault("is not described by a map");
  TensorInfo tensor;
  tensor.name = name;
  tensor.dtype = node.string_at("dtype");
  tensor.type = dtype_of(tensor.dtype).value_or(DataType::unknown);
  for (const Node& extent : node.at("shape").sequence("shape")) tensor.shape.push_back(extent.as_integer("shape", 0));
  const std::vector<Node>& offsets = node.at("data_offsets").sequence("data_offsets");
  if (offsets.size() != 2) throw fault(fmt::format("has {} data_offsets in place of 2", offsets.size()));
  const std::int64_t begin = offsets[0].as_integer("data_offsets", 0);
  const std::int64_t end = offsets[1].as_integer("data_offsets", 0);
  if (begin > end || end > data_bytes) {
    throw fault(fmt::format("lies at bytes {}..{}, the file holds {}", begin, end, data_bytes));
  }
  std::int64_t bytes = 0;
  const std::int64_t numbers = volume(tensor.shape, node);
  // How long such numbers are nobody knows.
  if (tensor.type == DataType::unknown) {
    bytes = end - begin;
  } else if (__builtin_mul_overflow(numbers, bytes_per_number(tensor.type), &bytes) || bytes != end - begin) {
    throw fault(
        fmt::format("has {} bytes, not what {} numbers of {} take", end - begin, describe(tensor.shape), tensor.dtype));
  }
  tensor.offset = begin;
  tensor.bytes = bytes;
  return tensor;
}

/// The tensors must lie end to end from byte 0 to the last.
void check_layout(std::vector<TensorInfo>& tensors, std::int64_t data_bytes, const std::filesystem::path& file) {
  std::sort(tensors.begin(), tensors.end(), [](const TensorInfo& a, const TensorInfo& b) {
    return std::tie(a.offset, a.bytes, a.name) < std::tie(b.offset, b.bytes, b.name);
  });
  std::int64_t end = 0;
  const TensorInfo* before = nullptr;
  for (const TensorInfo& tensor : tensors) {
    if (tensor.offset < end)
      throw broken(file, fmt::format("tensors {} and {} overlap", in_quotes(before->name), in_quotes(tensor.name)));
    if (tensor.offset > end) {
      throw broken(
          file, fmt::format("{} bytes before tensor {} belong to none", tensor.offset - end, in_quotes(tensor.name)));
    }
    end += tensor.bytes;
    before = &tensor;
  }
  if (end != data_bytes) throw broken(file, fmt::format("{} bytes at the end belong to no tensor", data_bytes - end));
}

}  // namespace

InputFile::InputFile(const std::filesystem::path& path)
    : path_(path), descriptor_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
  if (descriptor_ < 0) {
    throw broken(path, fmt::format("cannot be read ({})", std::strerror(errno)), "give a readable file");
  }
  struct stat status {};
  if (::fstat(descriptor_, &status) != 0 || !S_ISREG(status.st_mode)) {
    ::close(descriptor_);
    throw broken(path, "is not a file", "give a safetensors file");
  }
  size_ = status.st_size;
}

InputFile::~InputFile() {
  ::close(descriptor_);
}

void InputFile::read(std::int64_t offset, std::span<std::byte> target) const {
  while (!target.empty()) {
    const ssize_t count = ::pread(descriptor_, target.data(), target.size(), offset);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw Failure(fmt::format("{}: reading failed ({})", path_.string(), std::strerror(errno)));
    if (count == 0) throw broken(path_, "the file became shorter while it was read");
    target = target.subspan(static_cast<std::size_t>(count));
    offset += count;
  }
}

std::vector<TensorInfo> read_tensors(const std::filesystem::path& file) {
  const InputFile input(file);
  const std::string header = read_header(input, file);
  const std::int64_t data_begin = kLengthBytes + static_cast<std::int64_t>(header.size());
  const std::int64_t data_bytes = input.size() - data_begin;
  const Node root = parse_json(header, file.string());
  if (!root.is_map()) throw broken(file, "the header is not a JSON object");
  std::vector<TensorInfo> tensors;
  for (const auto& [name, node] : root.fields) {
    if (name != "__metadata__") tensors.push_back(read_entry(name, node, data_bytes));
  }
  check_layout(tensors, data_bytes, file);
  for (TensorInfo& tensor : tensors) {
    tensor.file = file;
    tensor.offset += data_begin;
  }
  return tensors;
}

}  // namespace braid::exec
