#pragma once

#include <map>

#include "exec/decoder_layer.h"
#include "exec/sample_chunks.h"

namespace braid::exec {

/// Sums of token losses by task.
struct TaskLoss {
  double sum = 0;  ///< already divided by the supervised tokens of the task's global batch
};

/// Throws Error for a family of backbones that this build has no kernels for.
void check_family(const costmodel::BackboneShape& backbone);

/// One stage of the backbone with what its microbatches have under way. Not for concurrent use.
class StageModel {
 public:
  /// Computes on the device whose memory `pool` lends; the weights are packed for it.
  StageModel(const costmodel::BackboneShape& backbone, planner::LayerRange layers, StageWeights weights,
             BufferPool& pool, Probe& probe);

  /// Compiles the products of the layers, and of the head where it is here, for microbatches of any length, so that
  /// none waits for it and the memory that it takes does not depend on lengths.
  void compile_layers() const;
  void compile_head() const;

  /// Hidden state [T, H] in (none on the first stage) and out (none on the last, which computes the losses and the
  /// gradient they send back). `loss_scale`[task] is 1 / supervised tokens of the task's global batch; losses[task]
  /// grows. Chunks of a sample must come in order, and in reverse to `backward`.
  Buffer forward(planner::MicrobatchId id, Batch batch, Buffer input,
                 std::span<const std::unique_ptr<Adapter>> adapters, std::span<const std::uint64_t> seeds,
                 std::span<const double> loss_scale, std::span<TaskLoss> losses);

  /// Gradient of the output in (none on the last stage), of the input out; on the first stage what comes back is empty.
  /// Ends the microbatch.
  Buffer backward(planner::MicrobatchId id, Buffer gradient, std::span<const std::unique_ptr<Adapter>> adapters,
                  std::span<const std::uint64_t> seeds);

  /// Logits [T, V] of a batch; the last layers must be here, and the first: for tests and evaluation.
  std::vector<float> logits(Batch batch, std::span<const std::unique_ptr<Adapter>> adapters,
                            std::span<const std::uint64_t> seeds);

  bool has_embedding() const { return layers_.first == 0; }
  bool has_head() const { return layers_.last == backbone_.layers; }
  std::size_t live() const { return live_.size(); }

 private:
  struct Live {
    Batch batch;
    std::vector<std::vector<SequencePlace>> earlier;  // per sequence: where its sample's earlier tokens are
    std::vector<LayerStash> layers;
    Buffer gradient;  // of the last layer's output, on the last stage
  };

  LayerContext context(std::span<const std::unique_ptr<Adapter>> adapters, std::span<const std::uint64_t> seeds) const {
    return {backbone_, weights_.rope_frequencies, adapters, seeds, pool_, probe_};
  }
  Buffer embed(const Batch& batch) const;
  Buffer through_layers(const LayerContext& layer_context, Live& live, Buffer hidden);
  LayerBatch layer_batch(const Live& live, std::size_t layer);
  void take_key_gradients(const Live& live);
  Buffer loss_gradient(const Batch& batch, const Buffer& hidden, std::span<const double> loss_scale,
                       std::span<TaskLoss> losses) const;

  costmodel::BackboneShape backbone_;
  planner::LayerRange layers_;
  StageWeights weights_;
  const kernels::Kernels& kernels_;
  BufferPool& pool_;
  Probe& probe_;
  std::map<planner::MicrobatchId, Live> live_;
  SampleChunks chunks_;
};

}  // namespace braid::exec
