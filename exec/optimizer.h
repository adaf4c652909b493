#pragma once

#include "exec/adapters/adapter.h"
#include "exec/buffer.h"
#include "kernels/kernels.h"
#include "workload/workload.h"

namespace braid::exec {

/// The learning rate of step `step` (from 0) of `steps`: a linear rise over warmup_steps, then as the schedule says,
/// with the semantics of transformers' get_*_schedule_with_warmup.
double learning_rate(const workload::Optimizer& optimizer, std::int64_t step, std::int64_t steps);

/// Per layer of the rank, in order, the sum of squares of the task's gradients: to be on the host, in `sums`, which
/// must stay, once an event recorded afterwards has ended.
void squared_norms(Adapter& adapter, BufferPool& pool, std::vector<double>& sums);
/// The same of several tasks, in one launch.
struct NormsOf {
  Adapter* adapter;
  std::vector<double>* sums;
};
void squared_norms(std::span<const NormsOf> tasks, BufferPool& pool);

/// What a global norm makes of the gradient: 1 when it is within `max_norm` (0: always), as torch's clip_grad_norm_.
double clip_scale(double norm, double max_norm);

/// One AdamW step on this stage's part of the adapter, then clears the gradient. `step` counts from 0.
void take_step(const workload::Optimizer& optimizer, std::int64_t step, std::int64_t steps, double gradient_scale,
               Adapter& adapter, const kernels::Kernels& kernels);
/// The same of several tasks, all of whose numbers one launch changes.
struct StepOf {
  const workload::Optimizer* optimizer;
  std::int64_t step, steps;
  double gradient_scale;
  Adapter* adapter;
};
void take_steps(std::span<const StepOf> tasks, const kernels::Kernels& kernels);

}  // namespace braid::exec
