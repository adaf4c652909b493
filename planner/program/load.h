#pragma once

#include <span>

#include "costmodel/work/operators.h"
#include "planner/program/program.h"

namespace braid::planner {

/// What the cost model must know of a microbatch; `adapters` are the tasks'.
costmodel::MicrobatchLoad load_of(const Microbatch& microbatch, std::span<const costmodel::AdapterShape> adapters,
                                  costmodel::AdapterKernels kernels = costmodel::AdapterKernels::separate);

costmodel::StageShape shape_of(const StageProgram& stage);
/// Of what a part computes there: of interleaved stages one run of layers.
costmodel::StageShape shape_of(const StageProgram& stage, const Part& part);

/// The loads of a Program's microbatches, each told once.
class ProgramLoads {
 public:
  ProgramLoads(const Program& program, std::span<const costmodel::AdapterShape> adapters,
               costmodel::AdapterKernels kernels = costmodel::AdapterKernels::separate);
  const costmodel::MicrobatchLoad& of(MicrobatchId id) const;

 private:
  const Program& program_;
  std::vector<costmodel::MicrobatchLoad> loads_;  // as the Program's microbatches
};

}  // namespace braid::planner
