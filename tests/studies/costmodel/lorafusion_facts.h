#pragma once

#include <vector>

#include "studies/costmodel/paper_facts.h"

namespace braid::costmodel::studies {

/// LoRAFusion §3.1 and figures 17 and 19: one linear layer with an adapter of rank 16 and dropout on an H100. Fused
/// kernels are told both as §5.1 designs them and as the authors released and measured them, with dropout in a kernel
/// of its own.
std::vector<PaperFact> lorafusion_facts();

}  // namespace braid::costmodel::studies
