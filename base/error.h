#pragma once

#include <stdexcept>
#include <string>

#include <fmt/format.h>

#include "base/utf8.h"

namespace braid {

/// Bad input or arguments: what is wrong and what would be right. The program ends with status 2. Whatever the message
/// quotes, what() is one line of valid UTF-8.
class Error : public std::runtime_error {
 public:
  explicit Error(std::string_view message) : std::runtime_error(message_line(message)) {}
};

/// Something outside us failed while running (a full disk, a lost rank, a diverged task). The program ends with
/// status 1. One line of valid UTF-8, as Error's.
class Failure : public std::runtime_error {
 public:
  explicit Failure(std::string_view message) : std::runtime_error(message_line(message)) {}
};

/// A mistake of ours, found by BRAID_CHECK.
class InternalError : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

/// An Error whose message is formatted: `throw error("{}: no such file; give ...", path)`.
template <typename... Args>
Error error(fmt::format_string<Args...> format, Args&&... args) {
  return Error(fmt::format(format, std::forward<Args>(args)...));
}

/// An Error about one line of a file: "FILE:LINE: what is wrong; what would be right".
Error error_at(const std::string& file, int line, const std::string& what, const std::string& remedy);

namespace detail {
[[noreturn]] void check_failed(const char* file, int line, const char* condition, const std::string& message);
}

}  // namespace braid

/// Stops on a broken invariant of our own; never compiled out. Bad input throws Error instead.
#define BRAID_CHECK(condition, ...)                                                              \
  do {                                                                                           \
    if (!(condition)) [[unlikely]]                                                               \
      ::braid::detail::check_failed(__FILE__, __LINE__, #condition, ::fmt::format(__VA_ARGS__)); \
  } while (false)
