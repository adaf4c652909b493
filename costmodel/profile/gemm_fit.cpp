#include "costmodel/profile/gemm_fit.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <vector>

#include <nlopt.h>

#include "base/error.h"

namespace braid::costmodel {
namespace {

struct Bounds {
  double low = 0;
  double high = 0;
};

/// What is searched: logarithms of the coefficients, and the wave rounding's odds.
constexpr std::array<Bounds, 9> kBounds = {{{-16, -11.5},  // launch: 0.1 to 10 µs
                                            {-18, -11.8},  // block: 0.02 to 7 µs
                                            {0, 7},        // block depth
                                            {-1, 0},       // rate efficiency
                                            {0, 7},        // edge cost
                                            {-0.8, 0},     // bandwidth efficiency
                                            {-3, 4},       // wave rounding
                                            {-3, 2},       // split cost
                                            {0, 4}}};      // cache bandwidth
constexpr std::size_t kUnknowns = kBounds.size();
static_assert(kFewestProducts == 2 * kUnknowns);

GemmCoefficients coefficients_at(const double* x) {
  return {std::exp(x[0]),
          std::exp(x[1]),
          std::exp(x[2]),
          std::exp(x[3]),
          std::exp(x[4]),
          std::exp(x[5]),
          1 / (1 + std::exp(-x[6])),
          std::exp(x[7]),
          std::exp(x[8])};
}

struct Problem {
  std::span<const GemmPoint> points;
  const Device* device = nullptr;
  DataType type = DataType::bf16;
};

/// Mean absolute relative error, smooth at zero: single points that no tile explains do not draw the fit to them.
double loss(unsigned, const double* x, double*, void* data) {
  const auto& problem = *static_cast<const Problem*>(data);
  const GemmModel model(*problem.device, problem.type, coefficients_at(x));
  constexpr double kSmooth = 0.03;
  double sum = 0;
  for (const GemmPoint& point : problem.points) {
    const double error = std::log(model.seconds(point.shape) / point.seconds);
    sum += std::sqrt(error * error + kSmooth * kSmooth);
  }
  return sum / static_cast<double>(problem.points.size());
}

double search(nlopt_algorithm algorithm, int evaluations, Problem& problem, std::vector<double>& x) {
  std::vector<double> low, high;
  for (const Bounds& bounds : kBounds) {
    low.push_back(bounds.low);
    high.push_back(bounds.high);
  }
  nlopt_opt optimizer = nlopt_create(algorithm, kUnknowns);
  nlopt_set_lower_bounds(optimizer, low.data());
  nlopt_set_upper_bounds(optimizer, high.data());
  nlopt_set_min_objective(optimizer, &loss, &problem);
  nlopt_set_maxeval(optimizer, evaluations);
  double least = 0;
  const nlopt_result result = nlopt_optimize(optimizer, x.data(), &least);
  nlopt_destroy(optimizer);
  BRAID_CHECK(result > 0 || result == NLOPT_ROUNDOFF_LIMITED, "fitting failed with NLopt's code {}",
              static_cast<int>(result));
  return least;
}

}  // namespace

bool tells(std::span<const GemmPoint> points) {
  std::set<std::int64_t> rows, in, out;
  for (const GemmPoint& point : points) {
    rows.insert(point.shape.rows);
    in.insert(point.shape.in);
    out.insert(point.shape.out);
  }
  return points.size() >= kFewestProducts && std::min({rows.size(), in.size(), out.size()}) >= kFewestSizes;
}

GemmCoefficients fit_gemm(std::span<const GemmPoint> points, const Device& device, DataType type) {
  if (!tells(points))
    throw error(
        "{} measured products are too few to fit {} coefficients; give {} or more, of {} or more sizes each way",
        points.size(), kUnknowns, kFewestProducts, kFewestSizes);
  Problem problem{points, &device, type};
  constexpr int kStarts = 4;
  constexpr int kGlobal = 20000, kLocal = 10000;
  std::vector<double> best;
  double least = 0;
  for (unsigned long start = 1; start <= kStarts; ++start) {
    nlopt_srand(start);
    std::vector<double> x;
    for (const Bounds& bounds : kBounds) x.push_back((bounds.low + bounds.high) / 2);
    search(NLOPT_GN_CRS2_LM, kGlobal, problem, x);
    const double reached = search(NLOPT_LN_SBPLX, kLocal, problem, x);
    if (best.empty() || reached < least) best = x, least = reached;
  }
  return coefficients_at(best.data());
}

}  // namespace braid::costmodel
