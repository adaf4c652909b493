#pragma once

#include "kernels/kernels.h"

namespace braid::kernels::cuda {

const Kernels& table();

}  // namespace braid::kernels::cuda
