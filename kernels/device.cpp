#include "kernels/device.h"

#include "base/error.h"

namespace braid::kernels {

void Device::choose_kernels(std::vector<costmodel::KernelChoice> choices) {
  for (const costmodel::KernelChoice& choice : choices) {
    if (has_second_kernel(choice.op)) continue;
    throw error("the profile has second kernels compute {}, and {} has none: {}; profile this machine anew",
                costmodel::name(choice.op), machine(),
                choice.op == costmodel::Operator::attention ? "they are cuDNN 9.10's or later"
                                                            : "they are for H100 and H200 (compute capability 9.0)");
  }
}

}  // namespace braid::kernels
