#pragma once

#include <span>

#include "costmodel/operators.h"
#include "planner/program.h"

namespace braid::planner {

/// What the cost model must know of a microbatch; `adapters` are the tasks'.
costmodel::MicrobatchLoad load_of(const Microbatch& microbatch, std::span<const costmodel::AdapterShape> adapters,
                                  costmodel::AdapterKernels kernels = costmodel::AdapterKernels::separate);

costmodel::StageShape shape_of(const StageProgram& stage);

}  // namespace braid::planner
