#pragma once

#include "workload/read_task.h"

/// The `adapter` of a task; private to this folder.
namespace braid::workload {

/// Reads it, and of `init_from` where the adapter begins, an absolute folder, or empty. Every method has keys of its
/// own, with PEFT's names and meanings (bottleneck: AdapterHub's). Throws Error.
costmodel::AdapterShape read_adapter(const Node& node, const TaskContext& context, std::filesystem::path& init_from);

}  // namespace braid::workload
