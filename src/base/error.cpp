#include "base/error.h"

#include <string_view>

namespace braid {

Error error_at(const std::string& file, int line, const std::string& what, const std::string& remedy) {
  return Error(fmt::format("{}:{}: {}; {}", file, line, what, remedy));
}

namespace detail {

void check_failed(const char* file, int line, const char* condition, const std::string& message) {
  std::string_view path(file);
  const auto source = path.rfind("src/");
  if (source != std::string_view::npos) path.remove_prefix(source);
  throw InternalError(fmt::format("internal error at {}:{}: {} ({})", path, line, message, condition));
}

}  // namespace detail
}  // namespace braid
