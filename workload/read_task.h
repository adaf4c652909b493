#pragma once

#include <filesystem>

#include "base/node.h"
#include "workload/peft_config.h"
#include "workload/workload.h"

/// One entry of `tasks`; private to this folder.
namespace braid::workload {

struct TaskContext {
  std::filesystem::path folder;  ///< relative paths count from here
  std::int64_t max_position = 0;
  std::int64_t sliding_window = 0;  ///< of the backbone's attention; 0: none
  costmodel::BackboneShape backbone;
  ModuleNames modules;  ///< of the backbone
  bool files_must_exist = true;
};

Task read_task(const Node& node, const TaskContext& context);

/// Absolute and without a slash at its end.
std::filesystem::path resolve(const std::filesystem::path& folder, const std::filesystem::path& path);

}  // namespace braid::workload
