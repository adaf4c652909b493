#pragma once

#include <initializer_list>
#include <string_view>

#include "base/node.h"

namespace braid::workload {

/// As Node::allow_only, of a section of workload.yaml ("" for the file itself, "task", "adapter", "optimizer"). A key
/// that PEFT, transformers or LLaMA-Factory write is named with ours, and with the section where it belongs.
void allow_only_ours(const Node& node, std::string_view section, std::initializer_list<std::string_view> known);

}  // namespace braid::workload
