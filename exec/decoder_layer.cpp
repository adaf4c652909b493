#include "exec/decoder_layer.h"

#include "exec/adapters/lora.h"

namespace braid::exec {
namespace {

using costmodel::ModuleGroup;
using costmodel::Operator;
using costmodel::OperatorShape;
using costmodel::Pass;
using kernels::FrozenLinear;
using kernels::Matrix;

/// One pass of one microbatch through one layer: names the shapes once, and tells the probe of every operator.
class LayerPass {
 public:
  LayerPass(const LayerContext& context, const LayerWeights& weights, std::int32_t layer, const LayerBatch& batch,
            LayerStash& stash)
      : context_(context),
        kernels_(context.pool.device().kernels()),
        shape_(context.backbone),
        weights_(weights),
        batch_(batch.batch),
        earlier_(batch.earlier),
        stash_(stash),
        rows_(batch_.rows()),
        qkv_lora_(context, layer, ModuleGroup::qkv, batch_),
        o_lora_(context, layer, ModuleGroup::o, batch_),
        gate_up_lora_(context, layer, ModuleGroup::gate_up, batch_),
        down_lora_(context, layer, ModuleGroup::down, batch_),
        bottom_(layer == 0) {}

  Buffer forward(Buffer input) {
    stash_.input = std::move(input);
    attend();
    stash_.middle = attention_output();
    add(matrix(stash_.input, shape_.hidden), matrix(stash_.middle, shape_.hidden));
    Buffer output = feed_forward();
    add(matrix(stash_.middle, shape_.hidden), matrix(output, shape_.hidden));
    return output;
  }

  Buffer backward(Buffer gradient) {
    feed_forward_backward(gradient);
    attention_backward(gradient);
    stash_ = LayerStash();
    return gradient;
  }

 private:
  Matrix matrix(const Buffer& buffer, std::int64_t columns) const { return buffer.matrix(rows_, columns); }
  Buffer take(std::int64_t columns) const { return context_.pool.take(rows_ * columns); }

  template <typename Work>
  void run(Operator op, Pass pass, OperatorShape shape, const Work& work) const {
    context_.probe.run({op, pass, shape, rows_, 0, 0, 1}, work);
  }

  void add(Matrix from, Matrix to) const {
    run(Operator::residual, Pass::forward, {shape_.hidden}, [&] { kernels_.add(from, to); });
  }

  void linear_forward(const FrozenLinear& linear, Matrix x, Matrix y) const {
    run(Operator::linear, Pass::forward, {linear.in(), linear.out()}, [&] { linear.forward(x, y); });
  }

  void linear_backward(const FrozenLinear& linear, Matrix dy, Matrix dx) const {
    run(Operator::linear, Pass::backward, {linear.in(), linear.out()}, [&] { linear.backward(dy, dx); });
  }

  Buffer norm_forward(const Buffer& x, const std::vector<float>& weight, Buffer& scale) const {
    Buffer y = take(shape_.hidden);
    scale = context_.pool.take(rows_);
    run(Operator::rms_norm, Pass::forward, {shape_.hidden}, [&] {
      kernels_.rms_norm_forward(matrix(x, shape_.hidden), weight, static_cast<float>(shape_.norm_epsilon),
                                matrix(y, shape_.hidden), scale.span());
    });
    return y;
  }

  Buffer norm_again(const Buffer& x, const std::vector<float>& weight, const Buffer& scale) const {
    Buffer y = take(shape_.hidden);
    run(Operator::rms_norm, Pass::forward, {shape_.hidden},
        [&] { kernels_.rms_norm_again(matrix(x, shape_.hidden), weight, scale.span(), matrix(y, shape_.hidden)); });
    return y;
  }

  void norm_backward(const Buffer& dy, const Buffer& x, const std::vector<float>& weight, const Buffer& scale,
                     const Buffer& dx) const {
    run(Operator::rms_norm, Pass::backward, {shape_.hidden}, [&] {
      kernels_.rms_norm_backward(matrix(dy, shape_.hidden), matrix(x, shape_.hidden), weight, scale.span(),
                                 matrix(dx, shape_.hidden));
    });
  }

  OperatorShape rope_shape() const { return {shape_.heads + shape_.kv_heads, shape_.head_dim}; }
  float rope_scale() const { return static_cast<float>(shape_.rope_scaling.attention_factor); }
  kernels::AttentionShape attention_shape() const { return {shape_.heads, shape_.kv_heads, shape_.head_dim}; }

  /// The parts of a fused matrix.
  struct Qkv {
    Matrix q, k, v, qk, kv;
  };
  Qkv split(const Buffer& buffer) const { return split(buffer, rows_); }
  Qkv split(const Buffer& buffer, std::int64_t rows) const {
    const Matrix all = buffer.matrix(rows, shape_.qkv_width());
    const std::int64_t q = shape_.query_width(), kv = shape_.kv_width();
    return {all.column_range(0, q), all.column_range(q, q + kv), all.column_range(q + kv, q + 2 * kv),
            all.column_range(0, q + kv), all.column_range(q, q + 2 * kv)};
  }

  /// Attention is charged by sequence; the probe hears of the first sequence's length and of all rows.
  template <typename Work>
  void run_attention(Pass pass, const Work& work) const {
    std::int64_t context = 0, prefix = 0;
    if (!batch_.sequences.empty()) {
      prefix = batch_.sequences.front().begin;
      context = prefix + batch_.sequences.front().count;
    }
    context_.probe.run(
        {Operator::attention, pass, {shape_.heads, shape_.kv_heads, shape_.head_dim}, rows_, context, prefix, 1}, work);
  }

  kernels::EarlierKeys keys_of(const EarlierChunk& chunk, Pass pass) const {
    const SampleRows& rows = chunk.batch.sequences[chunk.sequence];
    const Qkv qkv = split(chunk.stash.qkv, chunk.batch.rows());
    const std::int64_t last = rows.first + rows.tokens, kv = shape_.kv_width();
    kernels::EarlierKeys keys{qkv.k.row_range(rows.first, last), qkv.v.row_range(rows.first, last), {}, {}};
    if (pass == Pass::backward) {
      const Matrix gradients = chunk.stash.key_gradients.at(chunk.sequence).matrix(rows.tokens, 2 * kv);
      keys.dk = gradients.column_range(0, kv);
      keys.dv = gradients.column_range(kv, 2 * kv);
    }
    return keys;
  }

  /// What attention works on: the sequences' rows, and views of their earlier chunks.
  struct Sequences {
    std::vector<std::vector<kernels::EarlierKeys>> earlier;
    std::vector<kernels::SequenceRows> rows;
  };
  Sequences sequences(Pass pass) const {
    Sequences result;
    result.earlier.resize(batch_.sequences.size());
    for (std::size_t s = 0; s < batch_.sequences.size(); ++s) {
      for (const EarlierChunk& chunk : earlier_[s]) result.earlier[s].push_back(keys_of(chunk, pass));
      result.rows.push_back({batch_.sequences[s].first, batch_.sequences[s].count, result.earlier[s]});
    }
    return result;
  }

  void add_key_gradients_of_later_chunks(Matrix d_kv) const {
    for (std::size_t s = 0; s < stash_.key_gradients.size(); ++s) {
      const Buffer& gradients = stash_.key_gradients[s];
      const SampleRows& rows = batch_.sequences[s];
      if (gradients.size() == 0) continue;
      kernels_.add(gradients.matrix(rows.tokens, d_kv.columns), d_kv.row_range(rows.first, rows.first + rows.tokens));
    }
  }

  OperatorShape head_norm_shape() const { return {shape_.heads, shape_.kv_heads, shape_.head_dim}; }

  /// What the head norms keep, apart for queries and keys.
  struct HeadNorms {
    Matrix q, k, q_scale, k_scale;
  };
  HeadNorms head_norms() const {
    const std::int64_t q = shape_.query_width(), heads = shape_.heads + shape_.kv_heads;
    const Matrix all = matrix(stash_.query_key, q + shape_.kv_width()), scales = matrix(stash_.head_scale, heads);
    return {all.column_range(0, q), all.column_range(q, all.columns), scales.column_range(0, shape_.heads),
            scales.column_range(shape_.heads, heads)};
  }

  void normalize_heads(const Qkv& qkv) {
    if (!shape_.qk_norm) return;
    stash_.query_key = take(shape_.query_width() + shape_.kv_width());
    stash_.head_scale = take(shape_.heads + shape_.kv_heads);
    const HeadNorms kept = head_norms();
    const auto epsilon = static_cast<float>(shape_.norm_epsilon);
    run(Operator::head_norm, Pass::forward, head_norm_shape(), [&] {
      kernels_.head_norm_forward(qkv.q, weights_.q_norm, epsilon, kept.q, kept.q_scale);
      kernels_.head_norm_forward(qkv.k, weights_.k_norm, epsilon, kept.k, kept.k_scale);
    });
  }

  void normalize_heads_backward(const Qkv& d) const {
    if (!shape_.qk_norm) return;
    const HeadNorms kept = head_norms();
    run(Operator::head_norm, Pass::backward, head_norm_shape(), [&] {
      kernels_.head_norm_backward(d.q, kept.q, weights_.q_norm, kept.q_scale);
      kernels_.head_norm_backward(d.k, kept.k, weights_.k_norm, kept.k_scale);
    });
  }

  void attend() {
    const Buffer normed = norm_forward(stash_.input, weights_.input_norm, stash_.input_scale);
    stash_.qkv = take(shape_.qkv_width());
    linear_forward(*weights_.qkv, matrix(normed, shape_.hidden), matrix(stash_.qkv, shape_.qkv_width()));
    qkv_lora_.forward(matrix(normed, shape_.hidden), matrix(stash_.qkv, shape_.qkv_width()), stash_);
    const Qkv qkv = split(stash_.qkv);
    normalize_heads(qkv);
    run(Operator::rope, Pass::forward, rope_shape(), [&] {
      kernels_.rope_forward(qkv.qk, shape_.head_dim, batch_.positions, context_.rope_frequencies, rope_scale());
    });
    stash_.attention = take(shape_.query_width());
    stash_.log_sum = take(shape_.heads);
    run_attention(Pass::forward, [&] {
      const Sequences all = sequences(Pass::forward);
      kernels_.attention_forward(attention_shape(), all.rows, qkv.q, qkv.k, qkv.v,
                                 matrix(stash_.attention, shape_.query_width()), matrix(stash_.log_sum, shape_.heads));
    });
  }

  Buffer attention_output() {
    Buffer output = take(shape_.hidden);
    linear_forward(*weights_.o, matrix(stash_.attention, shape_.query_width()), matrix(output, shape_.hidden));
    o_lora_.forward(matrix(stash_.attention, shape_.query_width()), matrix(output, shape_.hidden), stash_);
    return output;
  }

  Buffer activation() const {
    Buffer result = take(shape_.intermediate);
    run(Operator::swiglu, Pass::forward, {shape_.intermediate}, [&] {
      kernels_.swiglu_forward(matrix(stash_.gate_up, 2 * shape_.intermediate), matrix(result, shape_.intermediate));
    });
    return result;
  }

  Buffer feed_forward() {
    {
      const Buffer normed = norm_forward(stash_.middle, weights_.attention_norm, stash_.middle_scale);
      stash_.gate_up = take(2 * shape_.intermediate);
      linear_forward(*weights_.gate_up, matrix(normed, shape_.hidden), matrix(stash_.gate_up, 2 * shape_.intermediate));
      gate_up_lora_.forward(matrix(normed, shape_.hidden), matrix(stash_.gate_up, 2 * shape_.intermediate), stash_);
    }
    const Buffer activated = activation();
    Buffer output = take(shape_.hidden);
    linear_forward(*weights_.down, matrix(activated, shape_.intermediate), matrix(output, shape_.hidden));
    down_lora_.forward(matrix(activated, shape_.intermediate), matrix(output, shape_.hidden), stash_);
    return output;
  }

  /// `gradient` holds that of the layer's output and then that of `middle`.
  void feed_forward_backward(const Buffer& gradient) {
    const Matrix d_output = matrix(gradient, shape_.hidden);
    const Matrix gate_up = matrix(stash_.gate_up, 2 * shape_.intermediate);
    {
      const Buffer d_activation = take(shape_.intermediate);
      const Buffer activated = down_lora_.any() ? activation() : Buffer();
      linear_backward(*weights_.down, d_output, matrix(d_activation, shape_.intermediate));
      if (down_lora_.any())
        down_lora_.backward(matrix(activated, shape_.intermediate), d_output, matrix(d_activation, shape_.intermediate),
                            stash_);
      run(Operator::swiglu, Pass::backward, {shape_.intermediate},
          [&] { kernels_.swiglu_backward(matrix(d_activation, shape_.intermediate), gate_up, gate_up); });
    }
    const Buffer d_normed = take(shape_.hidden);
    linear_backward(*weights_.gate_up, gate_up, matrix(d_normed, shape_.hidden));
    if (gate_up_lora_.any()) {
      const Buffer normed = norm_again(stash_.middle, weights_.attention_norm, stash_.middle_scale);
      gate_up_lora_.backward(matrix(normed, shape_.hidden), gate_up, matrix(d_normed, shape_.hidden), stash_);
    }
    norm_backward(d_normed, stash_.middle, weights_.attention_norm, stash_.middle_scale, gradient);
  }

  /// `gradient` holds that of `middle` and then that of the layer's input.
  void attention_backward(const Buffer& gradient) {
    const Matrix d_middle = matrix(gradient, shape_.hidden);
    const Buffer d_attention = take(shape_.query_width());
    const Matrix attention = matrix(stash_.attention, shape_.query_width());
    linear_backward(*weights_.o, d_middle, matrix(d_attention, shape_.query_width()));
    if (o_lora_.any()) o_lora_.backward(attention, d_middle, matrix(d_attention, shape_.query_width()), stash_);
    if (bottom_ && !qkv_lora_.any()) return;
    const Buffer d_qkv = take(shape_.qkv_width());
    const Qkv qkv = split(stash_.qkv), d = split(d_qkv);
    run_attention(Pass::backward, [&] {
      const Sequences all = sequences(Pass::backward);
      kernels_.attention_backward(attention_shape(), all.rows, qkv.q, qkv.k, qkv.v, attention,
                                  matrix(stash_.log_sum, shape_.heads), matrix(d_attention, shape_.query_width()), d.q,
                                  d.k, d.v);
      add_key_gradients_of_later_chunks(d.kv);
    });
    run(Operator::rope, Pass::backward, rope_shape(), [&] {
      kernels_.rope_backward(d.qk, shape_.head_dim, batch_.positions, context_.rope_frequencies, rope_scale());
    });
    normalize_heads_backward(d);
    Buffer d_normed;
    if (!bottom_) {
      d_normed = take(shape_.hidden);
      linear_backward(*weights_.qkv, matrix(d_qkv, shape_.qkv_width()), matrix(d_normed, shape_.hidden));
    }
    if (qkv_lora_.any()) {
      const Buffer normed = norm_again(stash_.input, weights_.input_norm, stash_.input_scale);
      qkv_lora_.backward(matrix(normed, shape_.hidden), matrix(d_qkv, shape_.qkv_width()),
                         bottom_ ? Matrix() : matrix(d_normed, shape_.hidden), stash_);
    }
    if (!bottom_) norm_backward(d_normed, stash_.input, weights_.input_norm, stash_.input_scale, gradient);
  }

  const LayerContext& context_;
  const kernels::Kernels& kernels_;
  const costmodel::BackboneShape& shape_;
  const LayerWeights& weights_;
  const Batch& batch_;
  const std::vector<std::vector<EarlierChunk>>& earlier_;
  LayerStash& stash_;
  std::int64_t rows_;
  LoraGroup qkv_lora_, o_lora_, gate_up_lora_, down_lora_;
  bool bottom_;  // nothing below needs a gradient
};

}  // namespace

Buffer layer_forward(const LayerContext& context, const LayerWeights& weights, std::int32_t layer,
                     const LayerBatch& batch, Buffer input, LayerStash& stash) {
  return LayerPass(context, weights, layer, batch, stash).forward(std::move(input));
}

Buffer layer_backward(const LayerContext& context, const LayerWeights& weights, std::int32_t layer,
                      const LayerBatch& batch, Buffer gradient, LayerStash& stash) {
  return LayerPass(context, weights, layer, batch, stash).backward(std::move(gradient));
}

}  // namespace braid::exec
