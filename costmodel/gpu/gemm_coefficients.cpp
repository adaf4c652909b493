#include "costmodel/gpu/gemm_model.h"

namespace braid::costmodel {
namespace {

// What `costmodel_study crossvalidate` printed for all layers in Vidur's profiles (results/costmodel/operators.txt).
constexpr GemmCoefficients kAmpere = {4.12e-6, 1.52e-8, 80.9, 0.806, 1.00, 0.768, 0.278, 0.530, 2.242};
constexpr GemmCoefficients kAmpereGa10x = {1.48e-6, 1.52e-8, 136.3, 0.889, 7.56, 0.729, 0.664, 3.122, 54.598};
constexpr GemmCoefficients kHopper = {5.00e-6, 9.23e-7, 61.1, 1.000, 1.00, 0.908, 0.982, 0.710, 2.959};

}  // namespace

const GemmCoefficients& gemm_coefficients(Generation generation) {
  switch (generation) {
    case Generation::ampere:
    case Generation::volta:  // not measured; the nearest data-centre part
      return kAmpere;
    case Generation::ampere_ga10x:
    case Generation::ada:  // not measured; the same family of smaller dies
      return kAmpereGa10x;
    case Generation::hopper:
      break;
  }
  return kHopper;
}

}  // namespace braid::costmodel
