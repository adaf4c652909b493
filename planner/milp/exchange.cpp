#include "planner/milp/exchange.h"

#include <fmt/format.h>

#include "base/file.h"
#include "planner/milp/files.h"

namespace braid::planner::milp {

Exchange::Exchange(std::filesystem::path folder, std::filesystem::path solution)
    : folder_(std::move(folder)), solution_(std::move(solution)) {}

void Exchange::write(const Model& model) {
  if (folder_.empty()) return;
  const int time = ++times_[model.name()];
  const std::string name = time == 1 ? model.name() : fmt::format("{}_{}", model.name(), time);
  write_file(folder_ / (name + ".lp"), to_lp(model));
  write_file(folder_ / (name + ".mps"), to_mps(model));
  written_.push_back(name);
}

std::optional<std::vector<double>> Exchange::values_for(const Model& model) {
  if (!has_solution()) return std::nullopt;
  was_used_ = true;
  return read_solution(solution_, model);
}

}  // namespace braid::planner::milp
