#include "cli/commands/crossvalidate.h"

#include <cmath>
#include <map>

#include <fmt/core.h>

#include "base/error.h"
#include "base/statistics.h"
#include "costmodel/profile/profile_facts.h"

namespace braid::cli {

void crossvalidate(const std::filesystem::path& file) {
  const costmodel::Profile profile = costmodel::read_profile(file);
  std::map<std::string, std::vector<double>> by_operator;
  std::vector<double> all;
  for (const costmodel::HeldOutPoint& point : costmodel::hold_out(profile)) {
    if (point.entry.seconds <= 0) continue;
    all.push_back(std::abs(point.predicted / point.entry.seconds - 1));
    by_operator[fmt::format("{} {}", name(point.entry.op), name(point.entry.pass))].push_back(all.back());
  }
  if (all.empty())
    throw error("{}: no measured point lies between two others; give a profile that was measured, not derived",
                file.string());
  fmt::print("{}: each point between two others, predicted by the rest of its curve\n", profile.machine);
  fmt::print("{}{}", error_table_heading(), error_table_line("all", all));
  for (const auto& [what, errors] : by_operator) fmt::print("{}", error_table_line(what, errors));
}

}  // namespace braid::cli
