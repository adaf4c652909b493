#include "costmodel/gemm_fit.h"

#include <cmath>
#include <vector>

#include <nlopt.h>

#include "base/error.h"

namespace braid::costmodel {
namespace {

/// What is searched: logarithms of the coefficients, and the wave rounding's odds.
constexpr std::size_t kFixed = 6;
constexpr std::size_t kUnknowns = kFixed + kGemmTiles.size();

struct Bounds {
  double low = 0;
  double high = 0;
};

Bounds bounds_of(std::size_t unknown) {
  constexpr std::array<Bounds, kFixed> kBounds = {{{-16, -11.5},  // launch: 0.1 to 10 µs
                                                   {-18, -11.8},  // block: 0.02 to 7 µs
                                                   {-0.8, 0.0},   // bandwidth efficiency
                                                   {-3, 4},       // wave rounding
                                                   {-3, 2},       // split cost
                                                   {0, 4}}};      // cache bandwidth
  return unknown < kFixed ? kBounds[unknown] : Bounds{-1.5, 0.0};
}

GemmCoefficients coefficients_at(const double* x) {
  GemmCoefficients coefficients;
  coefficients.launch_seconds = std::exp(x[0]);
  coefficients.block_seconds = std::exp(x[1]);
  coefficients.bandwidth_efficiency = std::exp(x[2]);
  coefficients.wave_rounding = 1 / (1 + std::exp(-x[3]));
  coefficients.split_cost = std::exp(x[4]);
  coefficients.cache_bandwidth = std::exp(x[5]);
  for (std::size_t i = 0; i < kGemmTiles.size(); ++i) coefficients.tile_efficiency[i] = std::exp(x[kFixed + i]);
  return coefficients;
}

struct Problem {
  std::span<const GemmPoint> points;
  const Device* device = nullptr;
  DataType type = DataType::bf16;
};

/// Mean absolute relative error, smooth at zero: single points that no tile explains do not draw the fit to them.
double loss(unsigned, const double* x, double*, void* data) {
  const auto& problem = *static_cast<const Problem*>(data);
  const GemmCoefficients coefficients = coefficients_at(x);
  constexpr double kSmooth = 0.03;
  double sum = 0;
  for (const GemmPoint& point : problem.points) {
    const double error =
        std::log(gemm_seconds(*problem.device, problem.type, coefficients, point.shape) / point.seconds);
    sum += std::sqrt(error * error + kSmooth * kSmooth);
  }
  return sum / static_cast<double>(problem.points.size());
}

double search(nlopt_algorithm algorithm, int evaluations, Problem& problem, std::vector<double>& x) {
  std::vector<double> low, high;
  for (std::size_t i = 0; i < kUnknowns; ++i) {
    low.push_back(bounds_of(i).low);
    high.push_back(bounds_of(i).high);
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

GemmCoefficients fit_gemm(std::span<const GemmPoint> points, const Device& device, DataType type) {
  if (points.size() < 2 * kUnknowns)
    throw error("{} measured products are too few to fit {} coefficients; give {} or more", points.size(), kUnknowns,
                2 * kUnknowns);
  Problem problem{points, &device, type};
  constexpr int kStarts = 4;
  constexpr int kGlobal = 20000, kLocal = 10000;
  std::vector<double> best;
  double least = 0;
  for (unsigned long start = 1; start <= kStarts; ++start) {
    nlopt_srand(start);
    std::vector<double> x;
    for (std::size_t i = 0; i < kUnknowns; ++i) x.push_back((bounds_of(i).low + bounds_of(i).high) / 2);
    search(NLOPT_GN_CRS2_LM, kGlobal, problem, x);
    const double reached = search(NLOPT_LN_SBPLX, kLocal, problem, x);
    if (best.empty() || reached < least) best = x, least = reached;
  }
  return coefficients_at(best.data());
}

}  // namespace braid::costmodel
