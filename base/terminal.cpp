#include "base/terminal.h"

#include <cstdlib>

#include <unistd.h>

namespace braid {
namespace {

bool has_colours(std::FILE* stream) {
  const char* none = std::getenv("NO_COLOR");
  const char* kind = std::getenv("TERM");
  return !(none && *none) && kind && *kind && std::string_view(kind) != "dumb" && is_terminal(stream);
}

/// Of the 16 colours that every terminal has a readable version of.
std::string_view code_of(Tone tone) {
  switch (tone) {
    case Tone::error:
      return "1;31";
    case Tone::note:
      return "33";
    case Tone::heading:
      return "1";
    case Tone::best:
      return "32";
    case Tone::worse:
      return "31";
  }
  return "0";
}

}  // namespace

bool is_terminal(std::FILE* stream) {
  return ::isatty(::fileno(stream)) != 0;
}

std::string toned(std::string_view text, Tone tone, std::FILE* stream) {
  if (!has_colours(stream)) return std::string(text);
  return std::string("\x1b[").append(code_of(tone)).append("m").append(text).append("\x1b[0m");
}

}  // namespace braid
