#include "base/error.h"

#include <string_view>

namespace braid {

Error error_at(const std::string& file, int line, const std::string& what, const std::string& remedy) {
  return Error(fmt::format("{}:{}: {}; {}", file, line, what, remedy));
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
