#pragma once

#include <initializer_list>
#include <string_view>

#include "base/node.h"

namespace braid::costmodel {

/// Holds a config.json against the keys that braid knows: those that it reads of the Llama kind or that `read` names,
/// and those that change no arithmetic, pass without a word. A key by which transformers' related families compute
/// something else is refused, unless its value says that they do not. Any other key that has a value is named in a
/// notice, all in one line.
void check_config_keys(const Node& config, std::initializer_list<std::string_view> read);

}  // namespace braid::costmodel
