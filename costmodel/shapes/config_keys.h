#pragma once

#include "base/node.h"

namespace braid::costmodel {

/// Holds a config.json of the Llama kind against the keys that braid knows: those that it reads, and those that change
/// no arithmetic, pass without a word. A key by which transformers' related families compute something else is refused,
/// unless its value says that they do not. Any other key that has a value is named in a notice, all in one line.
void check_config_keys(const Node& config);

}  // namespace braid::costmodel
