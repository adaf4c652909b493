#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

// Mixed-integer linear programs, as LobRA's and LoRAFusion's searches come down to (LobRA Eq. 2 and 3, LoRAFusion Eq. 3
// and 4).
namespace braid::planner::milp {

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct Variable {
  std::string name;  ///< of letters, digits and '_', as LP and MPS files take them; each its own
  double low = 0;
  double high = kInfinity;
  double cost = 0;
  bool integer = false;
};

struct Term {
  std::int32_t variable = 0;
  double coefficient = 0;
};

/// low <= sum of the terms <= high.
struct Row {
  std::string name;
  double low = -kInfinity;
  double high = kInfinity;
  std::vector<Term> terms;  ///< each variable at most once
};

/// What is to be of the least cost.
class Model {
 public:
  /// `name` says what it is, in the files that it is written to.
  explicit Model(std::string name) : name_(std::move(name)) {}

  /// The place of the variable.
  std::int32_t add(Variable variable);
  void add(Row row);

  const std::string& name() const { return name_; }
  const std::vector<Variable>& variables() const { return variables_; }
  const std::vector<Row>& rows() const { return rows_; }

  double cost_of(std::span<const double> values) const;
  /// Whether there is a value for each variable, whole where it has to be, and all bounds and rows hold, to a
  /// millionth.
  bool holds(std::span<const double> values) const;

 private:
  std::string name_;
  std::vector<Variable> variables_;
  std::vector<Row> rows_;
};

}  // namespace braid::planner::milp
