#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "report/page.h"

namespace braid::report {

/// What a report asks of others.
struct ReportTools {
  /// The first windows of a plan.json as the simulator predicts them: a trace's text, and where `why` is set why there
  /// is none.
  std::function<std::string(const std::filesystem::path& plan, std::string& why)> predict;
};

/// A page of whatever is found at the paths: plans, timelines, validations, comparisons, the folders of training runs
/// and of cluster studies, in the order given. Folders that are none of these are searched, three levels deep, for what
/// is; other files in them are left out. Throws Error "FILE:LINE: what; remedy" where a file that was named is none of
/// these or is malformed, and where nothing is found.
std::vector<Section> make_sections(const std::vector<std::filesystem::path>& paths, const ReportTools& tools);

}  // namespace braid::report
