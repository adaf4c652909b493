#pragma once

#include <filesystem>
#include <map>
#include <optional>

#include "planner/milp/model.h"

namespace braid::planner::milp {

/// Models that are written for other solvers, and a solution that comes back from one.
class Exchange {
 public:
  /// `folder`: where models are written, made where need be; empty: nowhere. `solution`: a .sol file; empty: none.
  Exchange(std::filesystem::path folder, std::filesystem::path solution);

  /// Writes NAME.lp and NAME.mps: "deployment", or where several models have that name "deployment_2" and so on.
  void write(const Model& model);
  /// What was written, in order.
  const std::vector<std::string>& written() const { return written_; }

  bool has_solution() const { return !solution_.empty(); }
  /// Of the given solution the values of this model; nothing where none was given. Throws as read_solution.
  std::optional<std::vector<double>> values_for(const Model& model);
  /// Whether it was asked for.
  bool was_used() const { return was_used_; }
  const std::filesystem::path& solution() const { return solution_; }

 private:
  std::filesystem::path folder_, solution_;
  std::map<std::string, int> times_;
  std::vector<std::string> written_;
  bool was_used_ = false;
};

}  // namespace braid::planner::milp
