#include "base/source_text.h"

#include <algorithm>

#include "base/error.h"
#include "base/file.h"

namespace braid {
namespace {

constexpr std::size_t kBlock = 1 << 16;
constexpr std::string_view kWhiteSpace = " \t\n\v\f\r";

}  // namespace

SourceText::SourceText(const std::filesystem::path& path) : file_(path.string()), in_(open_to_read(path)) {}

char SourceText::first_character() {
  BRAID_CHECK(eback() == nullptr, "the beginning of {} is asked for when it is read", file_);
  std::size_t place = std::string_view::npos;
  for (std::size_t held = 0; place == std::string_view::npos && in_;) {
    const std::size_t seen = held;
    held = load(seen);
    place = std::string_view(block_.data(), held).find_first_not_of(kWhiteSpace, seen);
  }
  return place == std::string_view::npos ? '\0' : block_[place];
}

int SourceText::line() {
  line_ += static_cast<int>(std::count(counted_, static_cast<const char*>(gptr()), '\n'));
  counted_ = gptr();
  return line_;
}

SourceText::int_type SourceText::underflow() {
  line();
  return load(0) == 0 ? traits_type::eof() : traits_type::to_int_type(*gptr());
}

std::size_t SourceText::load(std::size_t kept) {
  block_.resize(kept + kBlock);
  in_.read(block_.data() + kept, kBlock);
  if (in_.bad()) throw Failure(fmt::format("{}: reading failed; check the disk", file_));
  const std::size_t held = kept + static_cast<std::size_t>(in_.gcount());
  setg(block_.data(), block_.data(), block_.data() + held);
  counted_ = block_.data();
  return held;
}

}  // namespace braid
