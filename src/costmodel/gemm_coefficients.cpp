#include "costmodel/gemm_model.h"

namespace braid::costmodel {
namespace {

// What `braid profile --crossvalidate` printed for the layers of Llama-2-7B in Vidur's profiles (results/costmodel).
constexpr GemmCoefficients kAmpere = {2.43e-6,
                                      2.33e-6,
                                      0.767,
                                      0.318,
                                      5.895,
                                      3.563,
                                      {0.416, 0.753, 0.781, 0.458, 0.667, 0.690, 0.314, 0.818, 0.382, 0.395}};
constexpr GemmCoefficients kAmpereGa10x = {8.97e-7,
                                           9.81e-7,
                                           0.702,
                                           0.982,
                                           0.239,
                                           54.598,
                                           {0.652, 0.256, 0.630, 0.225, 0.698, 0.762, 0.659, 0.585, 0.635, 0.776}};
constexpr GemmCoefficients kHopper = {4.46e-6,
                                      1.99e-6,
                                      0.855,
                                      0.913,
                                      1.006,
                                      3.117,
                                      {0.990, 0.223, 1.000, 0.960, 0.923, 0.223, 0.518, 1.000, 0.223, 1.000}};

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
