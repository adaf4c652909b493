#include "costmodel/gemm_model.h"

namespace braid::costmodel {
namespace {

// What `braid profile --crossvalidate` printed for the layers of Llama-2-7B in Vidur's profiles (results/costmodel).
constexpr GemmCoefficients kAmpere = {2.68e-6, 2.41e-6, 23.9, 0.809, 1.00, 0.767, 0.248, 5.377, 2.613};
constexpr GemmCoefficients kAmpereGa10x = {9.41e-7, 1.08e-7, 149.8, 0.817, 1.00, 0.705, 0.982, 0.363, 7.675};
constexpr GemmCoefficients kHopper = {4.84e-6, 7.96e-7, 159.7, 1.000, 1.00, 0.860, 0.907, 0.817, 3.158};

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
