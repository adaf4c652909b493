#pragma once

#include <memory>
#include <span>
#include <vector>

#include "exec/stage_model.h"

namespace braid::exec {

/// One task's sequences of `context` tokens, all scored: a microbatch, or one for each of the chunks of `chunk` tokens
/// that they are cut into. The last sequence may be shorter.
std::vector<Batch> uniform_batches(const costmodel::BackboneShape& backbone, std::int64_t tokens, std::int64_t context,
                                   std::int64_t chunk);

/// The bottom layers of a backbone, the first of which needs no gradient of its input, embedding and head with them, of
/// random weights and with one adapter: passes through them are timed, operator by operator.
class ProbedBackbone {
 public:
  /// As many layers as there are, at most `layers`.
  ProbedBackbone(const costmodel::BackboneShape& backbone, std::int64_t layers);

  /// What a run compiles before it begins.
  void compile_layers() const { model_.compile_layers(); }
  void compile_head() const { model_.compile_head(); }

  /// A new one in place of the last.
  void set_adapter(const costmodel::AdapterShape& adapter);

  /// Until the next run.
  struct Passes {
    double forward_seconds = 0, backward_seconds = 0;
    std::span<const Probe::Record> forward, backward;  ///< empty where operators are not recorded
  };
  /// Forward through all batches, and backward in reverse. An adapter must have been set.
  Passes run(std::vector<Batch> batches, bool records);

 private:
  costmodel::BackboneShape shape_;
  planner::LayerRange layers_;
  Probe probe_;
  BufferPool pool_;
  StageModel model_;
  std::vector<std::unique_ptr<Adapter>> adapters_;
};

}  // namespace braid::exec
