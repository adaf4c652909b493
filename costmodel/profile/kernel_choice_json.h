#pragma once

#include <nlohmann/json.hpp>

#include "base/node.h"
#include "costmodel/profile/kernel_choice.h"

namespace braid::costmodel {

/// The form in profiles, and the same read back.
nlohmann::ordered_json json_of(const KernelChoice& choice);
/// Throws Error for what no GPU has a second kernel for.
KernelChoice kernel_choice_from(const Node& node);

}  // namespace braid::costmodel
