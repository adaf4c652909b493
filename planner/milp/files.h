#pragma once

#include <filesystem>

#include "planner/milp/model.h"

namespace braid::planner::milp {

/// The model in the LP format that CPLEX, Gurobi, HiGHS and CBC read.
std::string to_lp(const Model& model);
/// In free MPS format, likewise.
std::string to_mps(const Model& model);

/// The values of a .sol file as Gurobi, HiGHS or CBC writes it: a line with a name and a value for each variable, those
/// that are left out 0. Throws Error that names the line where a value is no number, and what the model has not where
/// no variable of the model is named.
std::vector<double> read_solution(const std::filesystem::path& path, const Model& model);

}  // namespace braid::planner::milp
