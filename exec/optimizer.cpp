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

void squared_norms(Adapter& adapter, BufferPool& pool, std::vector<double>& sums) {
  std::vector<kernels::ConstVector> layers;
  for (const std::int32_t layer : adapter.layers().numbers()) layers.push_back(adapter.gradients({layer, layer + 1}));
  sums.resize(layers.size());
  const Buffer numbers = pool.take_f32(2 * std::ssize(sums));
  pool.device().kernels().squared_norms(layers, numbers.doubles());
  pool.device().download(numbers.data(), std::as_writable_bytes(std::span(sums)));
}

double clip_scale(double norm, double max_norm) {
  if (max_norm <= 0) return 1;
  return std::min(1.0, max_norm / (norm + 1e-6));
}

namespace {

/// LoRA+ (Hayou et al. 2024): B's learning rate is `ratio` times that of all else.
void step_apart(const kernels::AdamWStep& step, double ratio, Adapter& adapter, const kernels::Kernels& kernels) {
  std::int64_t first = 0;
  for (std::int64_t layer = 0; layer < adapter.layers().count(); ++layer) {
    for (const ParameterShape& parameter : adapter.table()) {
      kernels::AdamWStep own = step;
      if (parameter.role == Role::b) own.learning_rate *= ratio;
      const std::int64_t last = first + parameter.count();
      kernels.adamw(own, adapter.gradients().range(first, last), adapter.parameters().range(first, last),
                    adapter.first_moments().range(first, last), adapter.second_moments().range(first, last));
      first = last;
    }
  }
}

}  // namespace

void take_step(const workload::Optimizer& optimizer, std::int64_t step, std::int64_t steps, double gradient_scale,
               Adapter& adapter, const kernels::Kernels& kernels) {
  kernels::AdamWStep adamw;
  adamw.learning_rate = learning_rate(optimizer, step, steps);
  adamw.beta1 = optimizer.beta1;
  adamw.beta2 = optimizer.beta2;
  adamw.epsilon = optimizer.epsilon;
  adamw.weight_decay = optimizer.weight_decay;
  adamw.gradient_scale = gradient_scale;
  adamw.step = step + 1;
  if (optimizer.lora_plus_ratio == 1) {
    kernels.adamw(adamw, adapter.gradients(), adapter.parameters(), adapter.first_moments(), adapter.second_moments());
  } else {
    step_apart(adamw, optimizer.lora_plus_ratio, adapter, kernels);
  }
  adapter.changed();
  const kernels::Vector gradients = adapter.gradients();
  kernels.fill(0, {gradients.data(), 1, std::ssize(gradients)});
}

}  // namespace braid::exec
