#pragma once

#include <filesystem>
#include <functional>

#include "base/node.h"

namespace braid::workload {

/// Hands the rows of a dataset's file to `take`, one at a time: JSON lines, the elements of one JSON list, or objects
/// over several lines, one after another. Blank lines and a byte order mark are passed over. Throws Error "FILE:LINE: what; remedy" for anything else; what the file is (packed, a table,
/// another encoding, other line ends) is named with the command that converts it.
void for_each_row(const std::filesystem::path& path, const std::function<void(const Node& row)>& take);

}  // namespace braid::workload
