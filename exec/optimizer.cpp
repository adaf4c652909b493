#include "exec/optimizer.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace braid::exec {

double learning_rate(const workload::Optimizer& optimizer, std::int64_t step, std::int64_t steps) {
  const auto warmup = static_cast<double>(optimizer.warmup_steps);
  const auto now = static_cast<double>(step);
  if (step < optimizer.warmup_steps) return optimizer.lr * now / std::max(1.0, warmup);
  const double left = std::max(1.0, static_cast<double>(steps) - warmup);
  const double progress = std::min(1.0, (now - warmup) / left);
  switch (optimizer.schedule) {
    case workload::Schedule::linear:
      return optimizer.lr * (1 - progress);
    case workload::Schedule::cosine:
      return optimizer.lr * 0.5 * (1 + std::cos(std::numbers::pi * progress));
    case workload::Schedule::constant:
      break;
  }
  return optimizer.lr;
}

void squared_norms(std::span<const NormsOf> tasks, BufferPool& pool) {
  std::vector<kernels::ConstVector> layers;
  for (const NormsOf& task : tasks) {
    for (const std::int32_t layer : task.adapter->layers().numbers())
      layers.push_back(task.adapter->gradients({layer, layer + 1}));
    task.sums->resize(static_cast<std::size_t>(task.adapter->layers().count()));
  }
  const Buffer numbers = pool.take_f32(2 * std::ssize(layers));
  pool.device().kernels().squared_norms(layers, numbers.doubles());
  std::int64_t first = 0;
  for (const NormsOf& task : tasks) {
    pool.device().download(numbers.doubles().data() + first, std::as_writable_bytes(std::span(*task.sums)));
    first += std::ssize(*task.sums);
  }
}

void squared_norms(Adapter& adapter, BufferPool& pool, std::vector<double>& sums) {
  const NormsOf task{&adapter, &sums};
  squared_norms({&task, 1}, pool);
}

double clip_scale(double norm, double max_norm) {
  if (max_norm <= 0) return 1;
  return std::min(1.0, max_norm / (norm + 1e-6));
}

namespace {

/// LoRA+ (Hayou et al. 2024): B's learning rate is `ratio` times that of all else.
void add_calls_apart(const kernels::AdamWStep& step, double ratio, Adapter& adapter,
                     std::vector<kernels::AdamWCall>& calls) {
  std::int64_t first = 0;
  for (std::int64_t layer = 0; layer < adapter.layers().count(); ++layer) {
    for (const ParameterShape& parameter : adapter.table()) {
      kernels::AdamWStep own = step;
      if (parameter.role == Role::b) own.learning_rate *= ratio;
      const std::int64_t last = first + parameter.count();
      calls.push_back({own, adapter.gradients().range(first, last), adapter.parameters().range(first, last),
                       adapter.first_moments().range(first, last), adapter.second_moments().range(first, last)});
      first = last;
    }
  }
}

}  // namespace

void take_steps(std::span<const StepOf> tasks, const kernels::Kernels& kernels) {
  std::vector<kernels::AdamWCall> calls;
  for (const StepOf& task : tasks) {
    const workload::Optimizer& optimizer = *task.optimizer;
    kernels::AdamWStep adamw;
    adamw.learning_rate = learning_rate(optimizer, task.step, task.steps);
    adamw.beta1 = optimizer.beta1;
    adamw.beta2 = optimizer.beta2;
    adamw.epsilon = optimizer.epsilon;
    adamw.weight_decay = optimizer.weight_decay;
    adamw.gradient_scale = task.gradient_scale;
    adamw.step = task.step + 1;
    Adapter& adapter = *task.adapter;
    if (optimizer.lora_plus_ratio == 1) {
      calls.push_back(
          {adamw, adapter.gradients(), adapter.parameters(), adapter.first_moments(), adapter.second_moments()});
    } else {
      add_calls_apart(adamw, optimizer.lora_plus_ratio, adapter, calls);
    }
  }
  kernels.adamw_group(calls);
  for (const StepOf& task : tasks) {
    task.adapter->changed();
    const kernels::Vector gradients = task.adapter->gradients();
    kernels.fill(0, {gradients.data(), 1, std::ssize(gradients)});
  }
}

void take_step(const workload::Optimizer& optimizer, std::int64_t step, std::int64_t steps, double gradient_scale,
               Adapter& adapter, const kernels::Kernels& kernels) {
  const StepOf task{&optimizer, step, steps, gradient_scale, &adapter};
  take_steps({&task, 1}, kernels);
}

}  // namespace braid::exec
