#include "kernels/device.h"

#include "base/error.h"

namespace braid::kernels {

void Device::choose_kernels(std::vector<costmodel::KernelChoice> choices) {
  for (const costmodel::KernelChoice& choice : choices) {
    if (has_second_kernel(choice.op)) continue;
    if (choice.op == costmodel::Operator::launch)
      throw error("layers are to be launched as CUDA graphs, and {} has none; profile this machine", machine());
    throw error(
        "second kernels are to compute {}, and {} has none: {}; profile this machine without them",
        costmodel::name(choice.op), machine(),
        choice.op == costmodel::Operator::attention
            ? "they are those of cuDNN 9.10.2 or later (9.18.1 but for H100 and H200), with all of its libraries "
              "and NVRTC where braid finds them, and braid built where its headers are"
            : "they are for H100 and H200 (compute capability 9.0)");
  }
}

}  // namespace braid::kernels
