#include "base/source_text.h"

#include <algorithm>

#include "base/error.h"
#include "base/file.h"
#include "base/utf8.h"

namespace braid {
namespace {

constexpr std::size_t kBlock = 1 << 16;
constexpr std::string_view kWhiteSpace = " \t\n\v\f\r";

}  // namespace

SourceText::SourceText(const std::filesystem::path& path) : file_(path.string()), in_(open_to_read(path)) {}

std::string_view SourceText::beginning() {
  if (!begun_) load(0);
  BRAID_CHECK(gptr() == eback(), "the beginning of {} is asked for when it is read", file_);
  return {gptr(), static_cast<std::size_t>(egptr() - gptr())};
}

char SourceText::first_character() {
  std::string_view seen = beginning();
  std::size_t place = seen.find_first_not_of(kWhiteSpace);
  for (std::size_t held = seen.size(); place == std::string_view::npos && in_; held = seen.size()) {
    load(held);
    seen = {gptr(), static_cast<std::size_t>(egptr() - gptr())};
    place = seen.find_first_not_of(kWhiteSpace, held);
  }
  return place == std::string_view::npos ? '\0' : seen[place];
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
  // What is kept lies at the block's end, behind a byte order mark perhaps.
  block_.erase(0, block_.size() - kept);
  block_.resize(kept + kBlock);
  in_.read(block_.data() + kept, kBlock);
  if (in_.bad()) throw Failure(fmt::format("{}: reading failed; check the disk", file_));
  block_.resize(kept + static_cast<std::size_t>(in_.gcount()));
  const std::size_t mark = !begun_ && block_.starts_with(kByteOrderMark) ? kByteOrderMark.size() : 0;
  begun_ = true;
  char* const first = block_.data() + mark;
  setg(first, first, block_.data() + block_.size());
  counted_ = gptr();
  return static_cast<std::size_t>(egptr() - gptr());
}

}  // namespace braid
