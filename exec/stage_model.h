#pragma once

#include <map>

#include "exec/decoder_layer.h"
#include "exec/head.h"
#include "exec/sample_chunks.h"
#include "exec/weight_shares.h"

namespace braid::exec {

/// Runs of a rank's layers [first, last); all of them where last is 0.
struct LayerRuns {
  std::size_t first = 0;
  std::size_t last = 0;
};

/// A rank's part of a backbone, some layers or a shard of them, with what its microbatches have under way. Not for
/// concurrent use.
class StageModel {
 public:
  /// Computes on the device whose memory `pool` lends; the weights are packed for it. What `recompute` says of the
  /// stage's lowest layers is computed again. Layers' products come from `shares` where it is there: then one pass is
  /// under way at a time.
  StageModel(Shard shard, HeldLayers layers, costmodel::Recompute recompute, StageWeights weights, BufferPool& pool,
             Probe& probe, std::unique_ptr<WeightShares> shares = nullptr);

  /// Compiles the products of the layers, and of the head where it is here, for microbatches of any length, so that
  /// none waits for it and the memory that it takes does not depend on lengths.
  void compile_layers() const;
  void compile_head() const;

  /// For another model; this one computes no more.
  StageWeights release_weights() { return std::move(weights_); }

  /// What an adapter begins with of the backbone: DoRA's magnitudes.
  void begin(Adapter& adapter) const;

  /// Through the runs of layers [first_run, last_run), which is all of them where the stage is not interleaved: hidden
  /// state [T, H] in (none before the backbone's first layer) and out (none after its last, where the losses and the
  /// gradient they send back are computed, by `objective`, which must stay until the microbatch has gone backward).
  /// Chunks of a sample must come in order, and in reverse to `backward`. What the spans show must stay until the pass
  /// has ended.
  std::unique_ptr<ShardedPass> forward(planner::MicrobatchId id, Batch batch, Buffer input,
                                       std::span<const std::unique_ptr<Adapter>> adapters,
                                       std::span<const std::uint64_t> seeds, Objective& objective, LayerRuns runs = {});

  /// Gradient of the output in (none after the backbone's last layer), of the input out (empty before its first). The
  /// lowest run ends the microbatch.
  std::unique_ptr<ShardedPass> backward(planner::MicrobatchId id, Buffer gradient,
                                        std::span<const std::unique_ptr<Adapter>> adapters,
                                        std::span<const std::uint64_t> seeds, LayerRuns runs = {});

  /// As `forward` does, without dropout and where no backward pass follows: hidden state in and out, and on the last
  /// stage `objective` is told the losses. Nothing stays under way. Samples are whole.
  std::unique_ptr<ShardedPass> score(Batch batch, Buffer input, std::span<const std::unique_ptr<Adapter>> adapters,
                                     std::span<const std::uint64_t> seeds, Objective& objective, LayerRuns runs = {});

  /// Logits [T, V] of a batch; the last layers must be here, and the first, whole: for tests and evaluation.
  std::vector<float> logits(Batch batch, std::span<const std::unique_ptr<Adapter>> adapters,
                            std::span<const std::uint64_t> seeds);

  /// Bytes of other ranks' weights that the system counts as this process's too.
  Bytes mapped_weights() const { return shares_ ? shares_->mapped() : 0; }
  /// Until all losses have been told to their objectives.
  void settle_losses() { losses_.settle(); }
  bool has_embedding() const { return layers_.first_of_backbone(); }
  bool has_head() const { return layers_.last_of_backbone(shard_.whole().layers); }
  std::size_t live() const { return live_.size(); }

 private:
  class Forward;
  class Backward;
  class Score;
  struct Live {
    Batch batch;
    std::vector<std::vector<SequencePlace>> earlier;  // per sequence: where its sample's earlier tokens are
    std::vector<LayerStash> layers;
    Buffer gradient;                 // of the last layer's output, on the last stage
    Objective* objective = nullptr;  // that it was scored by
  };

  LayerContext context(std::span<const std::unique_ptr<Adapter>> adapters, std::span<const std::uint64_t> seeds,
                       bool evaluates = false) const {
    return {shard_, weights_.rope_frequencies.view(), adapters, seeds, pool_, probe_, evaluates};
  }
  Buffer embed(const Batch& batch) const;
  static void place_tokens(std::span<const std::unique_ptr<Adapter>> adapters, Batch& batch);
  void add_positions(const Batch& batch, kernels::Matrix hidden) const;
  LayerBatch layer_batch(const Live& live, std::size_t layer);
  std::unique_ptr<ShardedPass> layer_forward(const LayerContext& layer_context, Live& live, std::size_t layer,
                                             Buffer hidden);
  std::unique_ptr<ShardedPass> layer_backward(const LayerContext& layer_context, Live& live, std::size_t layer,
                                              Buffer gradient);
  costmodel::RecomputeKind recomputed(std::size_t layer) const;
  std::optional<kernels::Matrix> next_sum(ShardedPass& part, costmodel::Pass pass, const Batch& batch,
                                          std::size_t layer, std::int64_t sums, bool evaluates) const;
  const LayerWeights& weights_of(std::size_t layer);
  void take_key_gradients(const Live& live);
  void apply_late_factors(const Live& live);
  /// The places of those runs' layers.
  std::pair<std::size_t, std::size_t> places(LayerRuns runs) const;

  Shard shard_;
  HeldLayers layers_;
  costmodel::Recompute recompute_;
  StageWeights weights_;
  std::unique_ptr<WeightShares> shares_;
  const kernels::Kernels& kernels_;
  BufferPool& pool_;
  Probe& probe_;
  std::map<planner::MicrobatchId, Live> live_;
  SampleChunks chunks_;
  PendingLosses losses_;
};

/// Runs a pass that no shards share to its end, and gives its result.
Buffer run_whole(const std::unique_ptr<ShardedPass>& pass);

}  // namespace braid::exec
