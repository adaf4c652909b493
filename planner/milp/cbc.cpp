#include "planner/milp/cbc.h"

#include <CbcEventHandler.hpp>
#include <CbcHeuristic.hpp>
#include <CbcHeuristicFPump.hpp>
#include <CbcModel.hpp>
#include <CglGomory.hpp>
#include <CglKnapsackCover.hpp>
#include <CglMixedIntegerRounding2.hpp>
#include <CglProbing.hpp>
#include <CoinPackedMatrix.hpp>
#include <OsiClpSolverInterface.hpp>

namespace braid::planner::milp {
namespace {

void load(const Model& model, OsiClpSolverInterface& solver) {
  const double infinity = solver.getInfinity();
  const auto finite = [&](double value) { return std::isinf(value) ? std::copysign(infinity, value) : value; };
  CoinPackedMatrix matrix(false, 0, 0);
  matrix.setDimensions(0, static_cast<int>(model.variables().size()));
  std::vector<double> low, high, row_low, row_high, cost;
  for (const Variable& variable : model.variables()) {
    low.push_back(finite(variable.low));
    high.push_back(finite(variable.high));
    cost.push_back(variable.cost);
  }
  for (const Row& row : model.rows()) {
    CoinPackedVector terms;
    for (const Term& term : row.terms) terms.insert(term.variable, term.coefficient);
    matrix.appendRow(terms);
    row_low.push_back(finite(row.low));
    row_high.push_back(finite(row.high));
  }
  solver.loadProblem(matrix, low.data(), high.data(), cost.data(), row_low.data(), row_high.data());
  for (std::size_t v = 0; v < model.variables().size(); ++v) {
    if (model.variables()[v].integer) solver.setInteger(static_cast<int>(v));
  }
}

/// Tells each solution that is better than those before. CBC copies it into the smaller models that its heuristics
/// solve, whose solutions are of other variables and are not told.
class Teller final : public CbcEventHandler {
 public:
  Teller(std::size_t variables, const std::function<void(std::span<const double>)>& tell)
      : variables_(variables), tell_(tell) {}

  CbcAction event(CbcEvent which) override {
    if (which == solution || which == heuristicSolution) {
      const double* values = model_->bestSolution();
      if (values && !model_->parentModel() && static_cast<std::size_t>(model_->getNumCols()) == variables_)
        tell_({values, variables_});
    }
    return noAction;
  }
  CbcEventHandler* clone() const override { return new Teller(*this); }

 private:
  std::size_t variables_;
  std::function<void(std::span<const double>)> tell_;
};

}  // namespace

CbcOutcome run_cbc(const Model& model, const Limits& limits, std::span<const double> start,
                   const std::function<void(std::span<const double>)>& tell) {
  OsiClpSolverInterface solver;
  load(model, solver);
  solver.messageHandler()->setLogLevel(0);
  CbcModel cbc(solver);
  cbc.setLogLevel(0);
  cbc.solver()->messageHandler()->setLogLevel(0);
  CglProbing probing;
  probing.setMaxPass(1);
  CglGomory gomory;
  CglKnapsackCover cover;
  CglMixedIntegerRounding2 rounding;
  cbc.addCutGenerator(&probing, -1, "probing");
  cbc.addCutGenerator(&gomory, -1, "gomory");
  cbc.addCutGenerator(&cover, -1, "cover");
  cbc.addCutGenerator(&rounding, -1, "rounding");
  CbcRounding nearest(cbc);
  cbc.addHeuristic(&nearest, "rounding");
  CbcHeuristicFPump pump(cbc);
  cbc.addHeuristic(&pump, "feasibility pump");
  Teller teller(model.variables().size(), tell);
  cbc.passInEventHandler(&teller);
  cbc.setUseElapsedTime(true);
  cbc.setMaximumSeconds(limits.seconds);
  cbc.setMaximumNodes(static_cast<int>(std::min<std::int64_t>(limits.nodes, std::numeric_limits<int>::max())));
  cbc.setAllowableFractionGap(limits.gap);
  if (!start.empty()) cbc.setBestSolution(start.data(), static_cast<int>(start.size()), model.cost_of(start), true);
  cbc.initialSolve();
  CbcOutcome outcome;
  if (cbc.isInitialSolveProvenPrimalInfeasible()) {
    outcome.ended = Ended::infeasible;
    return outcome;
  }
  cbc.branchAndBound();
  if (const double* values = cbc.bestSolution()) tell({values, model.variables().size()});
  outcome.bound = cbc.getBestPossibleObjValue();
  if (cbc.isProvenInfeasible()) {
    outcome.ended = Ended::infeasible;
  } else if (cbc.isSecondsLimitReached()) {
    outcome.ended = Ended::seconds;
  } else if (cbc.isNodeLimitReached()) {
    outcome.ended = Ended::nodes;
  } else {
    outcome.ended = Ended::proven;
  }
  return outcome;
}

}  // namespace braid::planner::milp
