#include <chrono>
#include <cmath>
#include <cstdlib>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "base/error.h"
#include "base/random.h"
#include "planner/milp/files.h"
#include "planner/milp/solve.h"
#include "support.h"

namespace braid::planner::milp {
namespace {

/// Whole variables of 0 to 3 and a row or more.
Model any_model() {
  Model model("any");
  const int variables = *rc::gen::inRange(1, 6), rows = *rc::gen::inRange(1, 4);
  for (int v = 0; v < variables; ++v)
    model.add(Variable{fmt::format("x{}", v), 0, 3, static_cast<double>(*rc::gen::inRange(-5, 6)), true});
  for (int r = 0; r < rows; ++r) {
    Row row{fmt::format("r{}", r), -kInfinity, static_cast<double>(*rc::gen::inRange(0, 12)), {}};
    if (*rc::gen::arbitrary<bool>()) row.low = *rc::gen::inRange(-3, 4);
    if (row.low > row.high) std::swap(row.low, row.high);
    for (std::int32_t v = 0; v < variables; ++v)
      row.terms.push_back({v, static_cast<double>(*rc::gen::inRange(-3, 4))});
    model.add(std::move(row));
  }
  return model;
}

double best_of_all(const Model& model) {
  double best = kInfinity;
  std::vector<double> values(model.variables().size(), 0.0);
  for (;;) {
    if (model.holds(values)) best = std::min(best, model.cost_of(values));
    std::size_t v = 0;
    while (v < values.size() && ++values[v] > 3) values[v++] = 0;
    if (v == values.size()) return best;
  }
}

RC_GTEST_PROP(Milp, FindsTheBestOfAllOrThatThereIsNone, ()) {
  const Model model = any_model();
  const double best = best_of_all(model);
  const Solution solution = solve(model, {});
  RC_ASSERT(solution.found() == !std::isinf(best));
  RC_ASSERT(solution.ended == (std::isinf(best) ? Ended::infeasible : Ended::proven));
  if (!solution.found()) return;
  RC_ASSERT(model.holds(solution.values));
  RC_ASSERT(std::abs(solution.cost - best) < 1e-6);
  RC_ASSERT(solution.bound <= best + 1e-6);
}

/// A market split: equations with random coefficients, as good as insoluble from thirty variables on (Cornuejols and
/// Dawande 1998); slack costs.
Model hard_model() {
  Model model("market_split");
  RandomStream random(3);
  constexpr int kRows = 4, kVariables = 40;
  for (int v = 0; v < kVariables; ++v) model.add(Variable{fmt::format("x{}", v), 0, 1, 0, true});
  for (int r = 0; r < kRows; ++r) {
    Row row{fmt::format("r{}", r), 0, 0, {}};
    double sum = 0;
    for (std::int32_t v = 0; v < kVariables; ++v) {
      row.terms.push_back({v, static_cast<double>(random.next_below(100))});
      sum += row.terms.back().coefficient;
    }
    for (const double sign : {1.0, -1.0})
      row.terms.push_back(
          {model.add(Variable{fmt::format("s{}_{}", r, sign > 0 ? "over" : "under"), 0, kInfinity, 1, false}), sign});
    row.low = row.high = std::floor(sum / 2);
    model.add(std::move(row));
  }
  return model;
}

/// All zeros, and slack.
std::vector<double> plain_start(const Model& model) {
  std::vector<double> start(model.variables().size(), 0.0);
  for (const Row& row : model.rows())
    start[static_cast<std::size_t>(row.terms[row.terms.size() - 2].variable)] = row.low;
  return start;
}

TEST(Milp, EndsAtItsDeadlineWithWhatIsKnown) {
  const Model model = hard_model();
  const std::vector<double> start = plain_start(model);
  ASSERT_TRUE(model.holds(start));
  for (const bool given : {true, false}) {
    const auto began = std::chrono::steady_clock::now();
    const Solution solution =
        solve(model, {1'000'000'000, 0.1, 0}, given ? std::span<const double>(start) : std::span<const double>());
    // The machine may be busy; minutes are what it would take.
    EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(5));
    EXPECT_EQ(solution.ended, Ended::seconds);
    if (!given) continue;
    EXPECT_LE(solution.cost, model.cost_of(start));
  }
}

TEST(Milp, NodesBindAlikeInEveryRun) {
  const Model model = hard_model();
  const Solution once = solve(model, {50, 600, 0}), again = solve(model, {50, 600, 0});
  EXPECT_EQ(once.ended, Ended::nodes);
  EXPECT_EQ(once.values, again.values);
}

TEST(Milp, IsNeverWorseThanItsStart) {
  Model model("one");
  model.add(Variable{"x", 0, 10, -1, true});
  model.add(Row{"most", -kInfinity, 7.5, {{0, 1.0}}});
  const Solution known = solve(model, {}, std::vector<double>{7});
  EXPECT_EQ(known.cost, -7);
  EXPECT_EQ(known.ended, Ended::proven);
  // One that does not hold is not taken.
  EXPECT_EQ(solve(model, {}, std::vector<double>{9}).cost, -7);
}

TEST(Milp, ASolutionFileOfAnySolverIsRead) {
  Model model("two");
  model.add(Variable{"x", 0, 10, 1, true});
  model.add(Variable{"y", 0, 10, 1, false});
  const TestFolder folder;
  for (const char* text :
       {"# Solution for model two\n# Objective value = 5\nx 3\ny 2.5\n",
        "Model status\nOptimal\n\n# Primal solution values\nFeasible\nObjective 5.5\n# Columns 2\nx 3\n"
        "y 2.5\n# Rows 0\n",
        "Optimal - objective value 5.50000000\n      0 x   3   1\n      1 y   2.5  1\n"}) {
    EXPECT_EQ(read_solution(folder.write("two.sol", text), model), (std::vector<double>{3, 2.5})) << text;
  }
  EXPECT_THROW(read_solution(folder.write("two.sol", "a 1\nb 2\n"), model), Error);
  EXPECT_THROW(read_solution(folder.write("two.sol", "x three\n"), model), Error);
}

TEST(Milp, FilesSayWhatTheModelIs) {
  Model model("files");
  model.add(Variable{"x", 1, 3, 2, true});
  model.add(Variable{"y", -kInfinity, kInfinity, -1, false});
  model.add(Row{"both", 1, 4, {{0, 1.0}, {1, -2.5}}});
  model.add(Row{"least", 2, kInfinity, {{1, 1.0}}});
  const std::string lp = to_lp(model), mps = to_mps(model);
  for (const char* part : {"both_low: + 1 x - 2.5 y >= 1", "both: + 1 x - 2.5 y <= 4", "least: + 1 y >= 2",
                           "1 <= x <= 3", "-inf <= y <= +inf", "Generals\n x\n"})
    EXPECT_NE(lp.find(part), std::string::npos) << part << "\n" << lp;
  for (const char* part : {" L both", " G least", " x both 1\n", " RNG both 3\n", " LO BND x 1\n", " UP BND x 3\n",
                           " MI BND y\n", "'INTORG'"})
    EXPECT_NE(mps.find(part), std::string::npos) << part << "\n" << mps;
}

}  // namespace
}  // namespace braid::planner::milp
