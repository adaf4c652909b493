#include "exec/adapters/lora.h"

#include "base/random.h"

namespace braid::exec {

using costmodel::Module;
using kernels::ConstMatrix;
using kernels::Matrix;
using kernels::Transpose;
using Part = Adapter::Part;

bool LoraGroup::any() const {
  for (const TaskSpan& span : batch_.tasks) {
    if (!targets_of(*context_.adapters[static_cast<std::size_t>(span.task)]).empty()) return true;
  }
  return false;
}

std::vector<LoraGroup::Target> LoraGroup::targets_of(const Adapter& adapter) const {
  std::vector<Target> targets;
  const auto add = [&](Module module, std::int64_t column) {
    const std::int64_t first = targets.empty() ? 0 : targets.back().last;
    Target& target = targets.emplace_back(Target{module, {}, first, first + adapter.shape().rank_of(module)});
    for (const Share rows : context_.shard.output_runs(module)) {
      target.outputs.push_back({rows, column});
      column += rows.count();
    }
  };
  // Modules of the product stand side by side in y, and what is several of them begins where the first does.
  std::int64_t column = 0;
  for (const Module module : costmodel::modules_of(context_.shard.whole(), group_)) {
    if (adapter.shape().has(module)) add(module, column);
    column += context_.shard.outputs(module).count();
  }
  if (group_ == costmodel::ModuleGroup::qkv && adapter.shape().has(Module::qkv)) add(Module::qkv, 0);
  return targets;
}

Matrix LoraGroup::stacked_a(Adapter& adapter, Part part) const {
  const Share in = context_.shard.inputs(costmodel::modules_of(group_).front());
  return adapter.stacked_a(part, layer_, group_).column_range(in.first, in.last);
}

Matrix LoraGroup::a(Adapter& adapter, Part part, Module module) const {
  const Share in = context_.shard.inputs(module);
  return adapter.a(part, layer_, module).column_range(in.first, in.last);
}

costmodel::OperatorCall LoraGroup::call(const TaskSpan& span, costmodel::Pass pass) const {
  const costmodel::AdapterShape& shape = context_.adapters[static_cast<std::size_t>(span.task)]->shape();
  const costmodel::Operator op = shape.dropout > 0 ? costmodel::Operator::lora_dropout : costmodel::Operator::lora;
  return {op,
          pass,
          costmodel::lora_shape(context_.shard.whole(), shape, group_, context_.shard.count()),
          span.last - span.first,
          0,
          0,
          1};
}

std::int64_t LoraGroup::width(const TaskSpan& span) const {
  return costmodel::low_rank_width(context_.adapters[static_cast<std::size_t>(span.task)]->shape(), group_);
}

void LoraGroup::forward(ConstMatrix x, Matrix y, LayerStash& stash) const {
  std::vector<Buffer>& kept = stash.low_rank[static_cast<std::size_t>(group_)];
  kept.clear();
  for (const TaskSpan& span : batch_.tasks) {
    Buffer& low_rank = kept.emplace_back();
    const costmodel::OperatorCall work = call(span, costmodel::Pass::forward);
    if (work.shape[3] == 0) continue;
    const std::int64_t columns = width(span);
    low_rank = context_.pool.take(work.tokens * columns);
    context_.probe.run(work, [&] {
      forward_span(span, x.row_range(span.first, span.last), y.row_range(span.first, span.last),
                   low_rank.matrix(work.tokens, columns));
    });
  }
}

void LoraGroup::backward(ConstMatrix x, ConstMatrix dy, Matrix dx, LayerStash& stash) const {
  const costmodel::Pass pass = dx.rows > 0 ? costmodel::Pass::backward : costmodel::Pass::parameters;
  for (std::size_t i = 0; i < batch_.tasks.size(); ++i) {
    const TaskSpan& span = batch_.tasks[i];
    const costmodel::OperatorCall work = call(span, pass);
    if (work.shape[3] == 0) continue;
    const Matrix low_rank = stash.low_rank[static_cast<std::size_t>(group_)][i].matrix(work.tokens, width(span));
    const Matrix dx_rows = dx.rows > 0 ? dx.row_range(span.first, span.last) : Matrix();
    context_.probe.run(work, [&] {
      backward_span(span, x.row_range(span.first, span.last), dy.row_range(span.first, span.last), dx_rows, low_rank);
    });
  }
}

void LoraGroup::forward_span(const TaskSpan& span, ConstMatrix x, Matrix y, Matrix low_rank) const {
  Adapter& adapter = *context_.adapters[static_cast<std::size_t>(span.task)];
  const std::vector<Target> targets = targets_of(adapter);
  if (adapter.shape().dropout == 0) {
    kernels().matmul(1, x, Transpose::no, stacked_a(adapter, Part::parameter), Transpose::yes, 0, low_rank);
  } else {
    // PEFT drops each module's input apart.
    for (const Target& target : targets) {
      const Buffer input = dropped(span, target.module, x);
      kernels().matmul(1, input.matrix(x.rows, x.columns), Transpose::no, a(adapter, Part::parameter, target.module),
                       Transpose::yes, 0, low_rank.column_range(target.first, target.last));
    }
  }
  for (const Target& target : targets) {
    for (const Outputs& outputs : target.outputs)
      kernels().matmul(adapter.scaling(target.module), low_rank.column_range(target.first, target.last), Transpose::no,
                       b(adapter, Part::parameter, target.module, outputs.rows), Transpose::yes, 1,
                       y.column_range(outputs.column, outputs.last_column()));
  }
}

void LoraGroup::backward_span(const TaskSpan& span, ConstMatrix x, ConstMatrix dy, Matrix dx, Matrix low_rank) const {
  Adapter& adapter = *context_.adapters[static_cast<std::size_t>(span.task)];
  const std::vector<Target> targets = targets_of(adapter);
  const Buffer gradient = context_.pool.take(low_rank.rows * low_rank.columns);
  const Matrix d_low_rank = gradient.matrix(low_rank.rows, low_rank.columns);
  for (const Target& target : targets) {
    float keeps = 0;
    for (const Outputs& outputs : target.outputs) {
      const ConstMatrix d_out = dy.column_range(outputs.column, outputs.last_column());
      kernels().matmul(adapter.scaling(target.module), d_out, Transpose::yes,
                       low_rank.column_range(target.first, target.last), Transpose::no, 1,
                       b(adapter, Part::gradient, target.module, outputs.rows));
      kernels().matmul(adapter.scaling(target.module), d_out, Transpose::no,
                       b(adapter, Part::parameter, target.module, outputs.rows), Transpose::no, keeps,
                       d_low_rank.column_range(target.first, target.last));
      keeps = 1;
    }
  }
  if (adapter.shape().dropout == 0) {
    kernels().matmul(1, d_low_rank, Transpose::yes, x, Transpose::no, 1, stacked_a(adapter, Part::gradient));
    if (dx.rows > 0)
      kernels().matmul(1, d_low_rank, Transpose::no, stacked_a(adapter, Part::parameter), Transpose::no, 1, dx);
    return;
  }
  for (const Target& target : targets) {
    const ConstMatrix d_target = d_low_rank.column_range(target.first, target.last);
    const Buffer input = dropped(span, target.module, x);
    kernels().matmul(1, d_target, Transpose::yes, input.matrix(x.rows, x.columns), Transpose::no, 1,
                     a(adapter, Part::gradient, target.module));
    if (dx.rows == 0) continue;
    const Matrix d_input = input.matrix(x.rows, x.columns);
    kernels().matmul(1, d_target, Transpose::no, a(adapter, Part::parameter, target.module), Transpose::no, 0, d_input);
    drop_into(span, target.module, d_input, true, dx);
  }
}

Buffer LoraGroup::dropped(const TaskSpan& span, Module module, ConstMatrix x) const {
  Buffer result = context_.pool.take(x.rows * x.columns);
  drop_into(span, module, x, false, result.matrix(x.rows, x.columns));
  return result;
}

void LoraGroup::drop_into(const TaskSpan& span, Module module, ConstMatrix x, bool accumulate, Matrix y) const {
  const auto first = static_cast<std::size_t>(span.first);
  const auto count = static_cast<std::size_t>(span.last - span.first);
  const std::uint64_t words[] = {context_.seeds[static_cast<std::size_t>(span.task)],
                                 static_cast<std::uint64_t>(span.global_batch), static_cast<std::uint64_t>(layer_),
                                 static_cast<std::uint64_t>(module)};
  kernels::DropoutRows rows;
  rows.positions = std::span(batch_.positions).subspan(first, count);
  rows.samples = std::span(batch_.samples).subspan(first, count);
  rows.key = mix_key(words);
  rows.first_column = context_.shard.inputs(module).first;
  rows.probability = static_cast<float>(context_.adapters[static_cast<std::size_t>(span.task)]->shape().dropout);
  kernels().dropout(rows, x, accumulate, y);
}

}  // namespace braid::exec
