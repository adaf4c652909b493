#pragma once

#include <cstdio>
#include <string>
#include <string_view>

namespace braid {

bool is_terminal(std::FILE* stream);

/// What a colour stands for; each thing is said in words as well.
enum class Tone { error, note, heading, best, worse };

/// `text` in the colour of its tone where `stream` is a terminal; as it is elsewhere, where NO_COLOR is set and not
/// empty (no-color.org), and where TERM is dumb or not set.
std::string toned(std::string_view text, Tone tone, std::FILE* stream);

}  // namespace braid
