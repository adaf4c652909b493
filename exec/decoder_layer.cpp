#include "exec/decoder_layer.h"

#include <algorithm>

#include "exec/layer_operators.h"

namespace braid::exec {
namespace {

using costmodel::LayerOp;
using costmodel::LayerWork;
using costmodel::RecomputeKind;
using costmodel::Slot;
using kernels::Matrix;

/// Walks the layer's operators from the first to the last.
class ForwardWalk {
 public:
  ForwardWalk(LayerOperators& operators, std::span<const LayerOp> ops) : operators_(operators), ops_(ops) {}

  std::optional<Matrix> next() {
    finish();
    while (place_ < ops_.size()) {
      const LayerOp& op = ops_[place_];
      if (shares_) {
        operators_.take_shared(op);
        shares_ = false;
      } else if (const std::optional<Matrix> shared = operators_.shared_by_adapters(op)) {
        shares_ = true;
        return shared;
      }
      ++place_;
      operators_.forward(op);
      drop_input(op);
      if (op.work != LayerWork::linear) continue;
      unfinished_ = &op;
      if (splits_rows(op.group) && operators_.shards() > 1) return operators_.slot(op.to);
      finish();
    }
    return std::nullopt;
  }

 private:
  /// The linear layer whose sum is whole now.
  void finish() {
    if (unfinished_) operators_.finish_linear(*unfinished_);
    unfinished_ = nullptr;
  }

  /// What is not kept has one reader.
  void drop_input(const LayerOp& op) {
    if (op.from == Slot::input || op.work == LayerWork::residual) return;
    if (!writer_of(ops_, op.from).kept) operators_.stash().at(op.from).release();
  }

  LayerOperators& operators_;
  std::span<const LayerOp> ops_;
  std::size_t place_ = 0;
  const LayerOp* unfinished_ = nullptr;
  bool shares_ = false;  // what the next operator's adapters have the shards sum up
};

class ForwardPass final : public ShardedPass {
 public:
  ForwardPass(LayerOperators operators, std::span<const LayerOp> ops, RecomputeKind recompute, Buffer input)
      : operators_(std::move(operators)), ops_(ops), recompute_(recompute), walk_(operators_, ops) {
    operators_.stash().at(Slot::input) = std::move(input);
  }

  std::optional<Matrix> next() override {
    if (std::optional<Matrix> partial = walk_.next()) return partial;
    LayerStash& stash = operators_.stash();
    output_ = std::move(stash.at(Slot::output));
    if (recompute_ == RecomputeKind::full) operators_.keep_input_alone();
    if (recompute_ == RecomputeKind::selective) {
      stash.at(Slot::attended).release();
      stash.log_sum.release();
    }
    return std::nullopt;
  }

  Buffer take_result() override { return std::move(output_); }

 private:
  LayerOperators operators_;
  std::span<const LayerOp> ops_;
  RecomputeKind recompute_;
  ForwardWalk walk_;
  Buffer output_;
};

/// Walks from the last operator to the first, or of the backbone's first layer to its lowest adapters.
class BackwardPass final : public ShardedPass {
 public:
  BackwardPass(LayerOperators operators, std::span<const LayerOp> ops, RecomputeKind recompute, bool bottom,
               Buffer gradient)
      : operators_(std::move(operators)),
        ops_(ops),
        recompute_(recompute),
        again_(operators_, ops),
        place_(ops.size()) {
    gradient_of(Slot::output) = std::move(gradient);
    if (!bottom) return;
    const auto is_linear = [](const LayerOp& op) { return op.work == LayerWork::linear; };
    const auto lowest = std::find_if(ops.begin(), ops.end(), is_linear);
    lowest_ = *lowest;
    const auto second = std::find_if(lowest + 1, ops.end(), is_linear);
    const auto attention =
        std::find_if(lowest + 1, second, [](const LayerOp& op) { return op.work == LayerWork::attention; });
    const auto end = operators_.adapts(lowest->group) ? lowest : operators_.has_prefix() ? attention : second;
    end_ = static_cast<std::size_t>(end - ops.begin());
  }

  std::optional<Matrix> next() override {
    if (recompute_ == RecomputeKind::full) {
      if (std::optional<Matrix> partial = again_.next()) return partial;
      recompute_ = RecomputeKind::none;
      operators_.stash().at(Slot::output).release();
    }
    while (place_ > end_) {
      const LayerOp& op = ops_[--place_];
      if (std::optional<Matrix> partial = backward(op)) return partial;
    }
    result_ = std::move(gradient_of(Slot::input));
    operators_.stash() = LayerStash();
    return std::nullopt;
  }

  Buffer take_result() override { return std::move(result_); }

 private:
  /// The gradient of a sum is that of both its parts: they share one buffer, under the sum's name.
  Slot holder(Slot slot) const {
    while (true) {
      const auto sum = std::find_if(ops_.begin(), ops_.end(), [&](const LayerOp& op) {
        return op.work == LayerWork::residual && (op.from == slot || op.also == slot);
      });
      if (sum == ops_.end()) return slot;
      slot = sum->to;
    }
  }
  Buffer& gradient_of(Slot slot) { return gradients_[static_cast<std::size_t>(holder(slot))]; }
  Matrix gradient(Slot slot) { return operators_.matrix(gradient_of(slot), slot); }
  /// For where the operator's gradient goes on to; norms add to it.
  void make_room(const LayerOp& op) {
    Buffer& buffer = gradient_of(op.from);
    if (buffer.size() > 0) return;
    buffer = operators_.take(op.from);
    if (op.work == LayerWork::norm) operators_.kernels().fill(0, buffer.row());
  }

  std::optional<Matrix> backward(const LayerOp& op) {
    switch (op.work) {
      case LayerWork::residual:
        return std::nullopt;
      case LayerWork::linear:
        return linear_backward(op);
      case LayerWork::activation:
        // It takes the place of what the activation was made from.
        operators_.backward(op, gradient(op.to), operators_.slot(op.from));
        gradient_of(op.from) = std::move(operators_.stash().at(op.from));
        gradient_of(op.to).release();
        return std::nullopt;
      case LayerWork::norm:
      case LayerWork::attention:
        make_room(op);
        operators_.backward(op, gradient(op.to), gradient(op.from));
        gradient_of(op.to).release();
        return std::nullopt;
      case LayerWork::head_norm:
      case LayerWork::rope:
        operators_.backward(op, gradient(op.to), {});
        return std::nullopt;
    }
    return std::nullopt;
  }

  std::optional<Matrix> linear_backward(const LayerOp& op) {
    const bool into_nothing = lowest_ && op.group == lowest_->group;
    if (!into_nothing) make_room(op);
    const LayerOp& writer = writer_of(ops_, op.from);
    Buffer again;
    if (recompute_ == RecomputeKind::selective && writer.work == LayerWork::attention) operators_.forward(writer);
    Matrix input;
    if (operators_.adapts(op.group)) {
      if (!writer.kept) again = operators_.forward_again(writer);
      input = writer.kept ? operators_.slot(op.from) : operators_.matrix(again, op.from);
    }
    Matrix d_to = gradient(op.to);
    Buffer apart;
    if (operators_.changes_output(op.group)) {
      // What the sum's other part gets is another gradient.
      if (holder(op.to) != op.to) {
        apart = operators_.take(op.to);
        operators_.kernels().copy(gradient(op.to), operators_.matrix(apart, op.to));
        d_to = operators_.matrix(apart, op.to);
      }
      operators_.output_backward(op, input, d_to);
    }
    operators_.linear_backward(op, input, d_to, into_nothing ? Matrix() : gradient(op.from));
    if (holder(op.to) == op.to) gradient_of(op.to).release();
    if (into_nothing || splits_rows(op.group) || operators_.shards() == 1) return std::nullopt;
    return gradient(op.from);
  }

  LayerOperators operators_;
  std::span<const LayerOp> ops_;
  RecomputeKind recompute_;
  ForwardWalk again_;
  std::array<Buffer, costmodel::kSlotCount> gradients_;
  Buffer result_;
  std::size_t place_;              // operators below it are still to come
  std::size_t end_ = 0;            // and those from here on are gone through
  std::optional<LayerOp> lowest_;  // linear layer of the backbone, where this is its first layer
};

}  // namespace

std::unique_ptr<ShardedPass> layer_forward(const LayerContext& context, const LayerWeights& weights, std::int32_t layer,
                                           LayerBatch batch, RecomputeKind recompute, Buffer input, LayerStash& stash) {
  return std::make_unique<ForwardPass>(LayerOperators(context, weights, layer, std::move(batch), stash),
                                       costmodel::layer_ops(context.shard.whole()), recompute, std::move(input));
}

std::unique_ptr<ShardedPass> layer_backward(const LayerContext& context, const LayerWeights& weights,
                                            std::int32_t layer, LayerBatch batch, RecomputeKind recompute,
                                            Buffer gradient, LayerStash& stash) {
  return std::make_unique<BackwardPass>(LayerOperators(context, weights, layer, std::move(batch), stash),
                                        costmodel::layer_ops(context.shard.whole()), recompute, layer == 0,
                                        std::move(gradient));
}

}  // namespace braid::exec
