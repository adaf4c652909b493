#include "base/error.h"

#include <cctype>
#include <string_view>

namespace braid {

Error error_at(const std::string& file, int line, const std::string& what, const std::string& remedy) {
  std::string message = fmt::format("{}:{}: {}; {}", file, line, what, remedy);
  // What stands in a file may hold line breaks; a message stays on one line.
  for (char& letter : message) letter = std::iscntrl(static_cast<unsigned char>(letter)) ? ' ' : letter;
  return Error(message);
}

namespace detail {

void check_failed(const char* file, int line, const char* condition, const std::string& message) {
  // The build makes paths begin at the repository's root; a compiler cache may put "../" before them.
  std::string_view path(file);
  while (path.starts_with("../")) path.remove_prefix(3);
  throw InternalError(fmt::format("internal error at {}:{}: {} ({})", path, line, message, condition));
}

}  // namespace detail
}  // namespace braid
