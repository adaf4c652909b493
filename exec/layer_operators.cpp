#include "exec/layer_operators.h"

#include <algorithm>

#include "base/error.h"

namespace braid::exec {

using costmodel::LayerOp;
using costmodel::LayerWork;
using costmodel::ModuleGroup;
using costmodel::Operator;
using costmodel::OperatorShape;
using costmodel::Pass;
using costmodel::Slot;
using kernels::ConstMatrix;
using kernels::Matrix;

LayerOperators::LayerOperators(const LayerContext& context, const LayerWeights& weights, std::int32_t layer,
                               LayerBatch batch, LayerStash& stash)
    : context_(context),
      kernels_(context.pool.device().kernels()),
      norm_(context.shard.whole(), kernels_),
      weights_(weights),
      layer_(layer),
      batch_(std::move(batch)),
      stash_(stash),
      rows_(batch_.batch.rows()) {}

bool LayerOperators::adapts(ModuleGroup group) const {
  return adapters(group).any();
}

bool LayerOperators::has_prefix() const {
  return std::any_of(batch_.batch.tasks.begin(), batch_.batch.tasks.end(), [&](const TaskSpan& span) {
    return context_.adapters[static_cast<std::size_t>(span.task)]->shape().virtual_tokens() > 0;
  });
}

bool LayerOperators::changes_output(ModuleGroup group) const {
  return adapters(group).changes_output();
}

template <typename Work>
void LayerOperators::run(const LayerOp& op, Pass pass, OperatorShape shape, const Work& work) const {
  context_.probe.run({operator_of(shard(), op.work), pass, shape, rows_, 0, 0, 1}, work);
}

/// Attention is charged by sequence; the probe hears of the first sequence's length and of all rows.
template <typename Work>
void LayerOperators::run_attention(Pass pass, const Work& work) const {
  std::int64_t context = 0, prefix = 0;
  if (!batch_.batch.sequences.empty()) {
    const SampleRows& first = batch_.batch.sequences.front();
    prefix = first.begin + context_.adapters[static_cast<std::size_t>(first.sample.task)]->shape().virtual_tokens();
    context = prefix + batch_.batch.sequences.front().count;
  }
  context_.probe.run({Operator::attention, pass, head_shape(), rows_, context, prefix, 1}, work);
}

kernels::Activation LayerOperators::activation() const {
  using costmodel::Nonlinearity;
  const bool gated = shard().gated();
  switch (shard().nonlinearity) {
    case Nonlinearity::gelu_tanh:
      return gated ? kernels::Activation::geglu : kernels::Activation::gelu;
    case Nonlinearity::relu:
      BRAID_CHECK(!gated, "a gate of relu");
      return kernels::Activation::relu;
    case Nonlinearity::silu:
      break;
  }
  BRAID_CHECK(gated, "silu without a gate");
  return kernels::Activation::swiglu;
}

LayerOperators::Qkv LayerOperators::split(Matrix qkv) const {
  const std::int64_t q = shard().query_width(), kv = shard().kv_width();
  return {qkv.column_range(0, q), qkv.column_range(q, q + kv), qkv.column_range(q + kv, q + 2 * kv),
          qkv.column_range(0, q + kv), qkv.column_range(q, q + 2 * kv)};
}

void LayerOperators::forward(const LayerOp& op) {
  switch (op.work) {
    case LayerWork::norm: {
      stash_.at(op.to) = take(op.to);
      stash_.statistics[static_cast<std::size_t>(op.to)] = context_.pool.take_f32(rows_ * norm_.statistics());
      run(op, Pass::forward, {shard().hidden},
          [&] { norm_.forward(slot(op.from), weights_.norm(op.to), slot(op.to), statistics(op.to)); });
      return;
    }
    case LayerWork::linear:
      return linear_forward(op);
    case LayerWork::head_norm:
      return normalize_heads(op);
    case LayerWork::rope:
      run(op, Pass::forward, {shard().heads + shard().kv_heads, shard().head_dim}, [&] {
        kernels_.rope_forward(split(slot(op.to)).qk, shard().head_dim, batch_.batch.places, context_.rope_frequencies,
                              rope_scale());
      });
      return;
    case LayerWork::attention:
      return attend(op);
    case LayerWork::activation:
      stash_.at(op.to) = forward_again(op);
      return;
    case LayerWork::residual:
      run(op, Pass::forward, {shard().hidden}, [&] { kernels_.add(slot(op.also), slot(op.from)); });
      stash_.at(op.to) = std::move(stash_.at(op.from));
      return;
  }
}

Buffer LayerOperators::forward_again(const LayerOp& op) {
  Buffer result = take(op.to);
  const Matrix to = matrix(result, op.to);
  if (op.work == LayerWork::norm) {
    run(op, Pass::forward, {shard().hidden},
        [&] { norm_.again(slot(op.from), weights_.norm(op.to), statistics(op.to), to); });
  } else {
    BRAID_CHECK(op.work == LayerWork::activation, "work {} leaves nothing to make it again from",
                static_cast<int>(op.work));
    run(op, Pass::forward, {shard().intermediate},
        [&] { kernels_.activation_forward(activation(), slot(op.from), to); });
  }
  return result;
}

std::optional<Matrix> LayerOperators::shared_by_adapters(const LayerOp& op) {
  if (op.work != LayerWork::linear || !splits_rows(op.group) || shards() == 1) return std::nullopt;
  shared_ = adapters(op.group).give_shared();
  if (shared_.size() == 0) return std::nullopt;
  return shared_.matrix(1, shared_.size());
}

void LayerOperators::take_shared(const LayerOp& op) {
  adapters(op.group).take_shared(shared_);
  shared_.release();
}

void LayerOperators::linear_forward(const LayerOp& op) {
  const kernels::FrozenLinear& linear = weights_.product(op.group);
  stash_.at(op.to) = take(op.to);
  AdapterGroup beside = adapters(op.group);
  stash_.adapters[static_cast<std::size_t>(op.group)].clear();
  beside.scale_inputs(slot(op.from));
  const Matrix x = slot(op.from), y = slot(op.to);
  Products added(kernels_);
  beside.forward_ahead(x, y, added);
  run(op, Pass::forward, {linear.in(), linear.out()}, [&] {
    if (added.any() && linear.forward_joined(x, y, added.in_order())) return;
    linear.forward(x, y);
    added.run();
  });
  beside.forward(x, y);
}

void LayerOperators::finish_linear(const LayerOp& op) {
  adapters(op.group).forward_sum(slot(op.to));
}

void LayerOperators::output_backward(const LayerOp& op, ConstMatrix input, Matrix d_to) {
  adapters(op.group).backward_output(input, d_to);
}

void LayerOperators::linear_backward(const LayerOp& op, ConstMatrix input, Matrix d_to, Matrix d_from) {
  const kernels::FrozenLinear& linear = weights_.product(op.group);
  AdapterGroup beside = adapters(op.group);
  Products added(kernels_);
  beside.backward_ahead(input, d_to, d_from, added);
  if (d_from.rows > 0) {
    run(op, Pass::backward, {linear.in(), linear.out()}, [&] {
      if (added.any() && linear.backward_joined(d_to, d_from, added.in_order())) return;
      linear.backward(d_to, d_from);
      added.run();
    });
  }
  beside.backward(input, d_to, d_from);
}

void LayerOperators::backward(const LayerOp& op, Matrix d_to, Matrix d_from) {
  switch (op.work) {
    case LayerWork::norm:
      run(op, Pass::backward, {shard().hidden},
          [&] { norm_.backward(d_to, slot(op.from), weights_.norm(op.to), statistics(op.to), d_from); });
      return;
    case LayerWork::head_norm: {
      const HeadNorms kept = head_norms();
      const Qkv d = split(d_to);
      run(op, Pass::backward, head_shape(), [&] {
        kernels_.head_norm_backward(d.q, kept.q, weights_.query_norm.weight.view(), kept.q_scale);
        kernels_.head_norm_backward(d.k, kept.k, weights_.key_norm.weight.view(), kept.k_scale);
      });
      return;
    }
    case LayerWork::rope:
      run(op, Pass::backward, {shard().heads + shard().kv_heads, shard().head_dim}, [&] {
        kernels_.rope_backward(split(d_to).qk, shard().head_dim, batch_.batch.places, context_.rope_frequencies,
                               rope_scale());
      });
      return;
    case LayerWork::attention:
      return attend_backward(op, d_to, d_from);
    case LayerWork::activation:
      run(op, Pass::backward, {shard().intermediate},
          [&] { kernels_.activation_backward(activation(), d_to, slot(op.from), d_from); });
      return;
    case LayerWork::linear:
    case LayerWork::residual:
      break;
  }
  BRAID_CHECK(false, "work {} has a way back of its own", static_cast<int>(op.work));
}

LayerOperators::HeadNorms LayerOperators::head_norms() const {
  const std::int64_t q = shard().query_width(), heads = shard().heads + shard().kv_heads;
  const Matrix all = stash_.query_key.matrix(rows_, q + shard().kv_width()),
               scales = stash_.head_scale.matrix(rows_, heads);
  return {all.column_range(0, q), all.column_range(q, all.columns), scales.column_range(0, shard().heads),
          scales.column_range(shard().heads, heads)};
}

void LayerOperators::normalize_heads(const LayerOp& op) {
  stash_.query_key = context_.pool.take(rows_ * (shard().query_width() + shard().kv_width()));
  stash_.head_scale = context_.pool.take_f32(rows_ * (shard().heads + shard().kv_heads));
  const HeadNorms kept = head_norms();
  const Qkv qkv = split(slot(op.to));
  const auto epsilon = static_cast<float>(shard().norm_epsilon);
  run(op, Pass::forward, head_shape(), [&] {
    kernels_.head_norm_forward(qkv.q, weights_.query_norm.weight.view(), epsilon, kept.q, kept.q_scale);
    kernels_.head_norm_forward(qkv.k, weights_.key_norm.weight.view(), epsilon, kept.k, kept.k_scale);
  });
}

kernels::EarlierKeys LayerOperators::keys_of(const EarlierChunk& chunk, Pass pass) const {
  const SampleRows& rows = chunk.batch.sequences[chunk.sequence];
  const std::int64_t kv = shard().kv_width();
  const Buffer& kept = chunk.stash.at(Slot::qkv);
  const Matrix keys_values = kept.size() > 0 ? split(kept.matrix(chunk.batch.rows(), shard().qkv_width()))
                                                   .kv.row_range(rows.first, rows.first + rows.tokens)
                                             : chunk.stash.keys.at(chunk.sequence).matrix(rows.tokens, 2 * kv);
  kernels::EarlierKeys keys{keys_values.column_range(0, kv), keys_values.column_range(kv, 2 * kv), {}, {}};
  if (pass == Pass::backward) {
    const Matrix gradients = chunk.stash.key_gradients.at(chunk.sequence).matrix(rows.tokens, 2 * kv);
    keys.dk = gradients.column_range(0, kv);
    keys.dv = gradients.column_range(kv, 2 * kv);
  }
  return keys;
}

Matrix LayerOperators::prefix_of(const SampleRows& rows, Adapter::Part part) const {
  Adapter& adapter = *context_.adapters[static_cast<std::size_t>(rows.sample.task)];
  if (adapter.shape().virtual_tokens() == 0) return {};
  return adapter.matrix(part, layer_, Role::prefix, costmodel::Module::q);
}

/// The shard's heads of a prefix [virtual tokens, 2 Hkv · D], and of their gradients what stands in `gradients`.
kernels::EarlierKeys LayerOperators::prefix_keys(Matrix prefix, const Buffer& gradients) const {
  const Share own = context_.shard.outputs(costmodel::Module::k);
  const std::int64_t whole = context_.shard.whole().kv_width(), kv = shard().kv_width();
  kernels::EarlierKeys keys{
      prefix.column_range(own.first, own.last), prefix.column_range(whole + own.first, whole + own.last), {}, {}};
  if (gradients.size() > 0) {
    const Matrix all = gradients.matrix(prefix.rows, 2 * kv);
    keys.dk = all.column_range(0, kv);
    keys.dv = all.column_range(kv, 2 * kv);
  }
  return keys;
}

/// Sequence after sequence, so that sums do not depend on threads.
void LayerOperators::add_prefix_gradients(const Sequences& all) const {
  const Share own = context_.shard.outputs(costmodel::Module::k);
  const std::int64_t whole = context_.shard.whole().kv_width(), kv = shard().kv_width();
  for (std::size_t s = 0; s < all.prefix_gradients.size(); ++s) {
    if (all.prefix_gradients[s].size() == 0) continue;
    const Matrix to = prefix_of(batch_.batch.sequences[s], Adapter::Part::gradient);
    const Matrix from = all.prefix_gradients[s].matrix(to.rows, 2 * kv);
    kernels_.add(from.column_range(0, kv), to.column_range(own.first, own.last));
    kernels_.add(from.column_range(kv, 2 * kv), to.column_range(whole + own.first, whole + own.last));
  }
}

LayerOperators::Sequences LayerOperators::sequences(Pass pass) const {
  const std::vector<SampleRows>& rows = batch_.batch.sequences;
  Sequences result;
  result.earlier.resize(rows.size());
  const bool backward = pass == Pass::backward;
  result.prefix_gradients.resize(rows.size());
  for (std::size_t s = 0; s < rows.size(); ++s) {
    if (const Matrix prefix = prefix_of(rows[s], Adapter::Part::parameter); prefix.rows > 0) {
      Buffer& gradients = result.prefix_gradients[s];
      if (backward) {
        gradients = context_.pool.take(prefix.rows * 2 * shard().kv_width());
        kernels_.fill(0, gradients.row());
      }
      result.earlier[s].push_back(prefix_keys(prefix, gradients));
    }
    for (const EarlierChunk& chunk : batch_.earlier[s]) result.earlier[s].push_back(keys_of(chunk, pass));
    kernels::SequenceRows& sequence = result.rows.emplace_back();
    sequence.first = rows[s].first;
    sequence.count = rows[s].count;
    sequence.earlier = result.earlier[s];
    if (!backward || s >= stash_.key_gradients.size() || stash_.key_gradients[s].size() == 0) continue;
    // What later chunks of the sample have sent back.
    const std::int64_t kv = shard().kv_width();
    const Matrix later = stash_.key_gradients[s].matrix(rows[s].tokens, 2 * kv);
    sequence.later_dk = later.column_range(0, kv);
    sequence.later_dv = later.column_range(kv, 2 * kv);
  }
  return result;
}

void LayerOperators::attend(const LayerOp& op) {
  const Qkv qkv = split(slot(op.from));
  stash_.at(op.to) = take(op.to);
  stash_.log_sum = context_.pool.take_f32(rows_ * shard().heads);
  run_attention(Pass::forward, [&] {
    const Sequences all = sequences(Pass::forward);
    kernels_.attention_forward(attention_shape(), all.rows, qkv.q, qkv.k, qkv.v, slot(op.to),
                               stash_.log_sum.matrix(rows_, shard().heads));
  });
}

void LayerOperators::attend_backward(const LayerOp& op, Matrix d_attended, Matrix d_qkv) {
  const Qkv qkv = split(slot(op.from)), d = split(d_qkv);
  run_attention(Pass::backward, [&] {
    const Sequences all = sequences(Pass::backward);
    kernels_.attention_backward(attention_shape(), all.rows, qkv.q, qkv.k, qkv.v, slot(op.to),
                                stash_.log_sum.matrix(rows_, shard().heads), d_attended, d.q, d.k, d.v);
    add_prefix_gradients(all);
  });
}

void LayerOperators::keep_input_alone() {
  LayerStash kept;
  kept.at(Slot::input) = std::move(stash_.at(Slot::input));
  const std::vector<SampleRows>& sequences = batch_.batch.sequences;
  const Matrix keys_values = split(slot(Slot::qkv)).kv;
  kept.keys.resize(sequences.size());
  for (const costmodel::LayerOp& op : costmodel::layer_ops(context_.shard.whole()))
    if (op.to != Slot::qkv) stash_.at(op.to).release();
  for (std::size_t s = 0; s < sequences.size(); ++s) {
    const SampleRows& rows = sequences[s];
    if (!rows.continues) continue;
    kept.keys[s] = context_.pool.take(rows.tokens * keys_values.columns);
    const Matrix keys = kept.keys[s].matrix(rows.tokens, keys_values.columns);
    kernels_.copy(keys_values.row_range(rows.first, rows.first + rows.tokens), keys);
  }
  stash_ = std::move(kept);
}

}  // namespace braid::exec
