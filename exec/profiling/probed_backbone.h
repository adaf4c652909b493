#pragma once

#include <memory>
#include <span>
#include <vector>

#include "exec/profiling/measured_points.h"
#include "exec/stage_model.h"

namespace braid::exec {

/// The bottom layers of a backbone, the first of which needs no gradient of its input, embedding and head with them, of
/// random weights and with the adapters of some tasks: passes through them are timed, operator by operator.
class ProbedBackbone {
 public:
  /// As many layers as there are, at most `layers`; of `tp` shards the first.
  ProbedBackbone(const costmodel::BackboneShape& backbone, std::int64_t layers, kernels::Device& device, int tp = 1,
                 costmodel::DataType weights = costmodel::DataType::f32);

  /// What a run compiles before it begins.
  void compile_layers() const { model_.compile_layers(); }
  void compile_head() const { model_.compile_head(); }

  /// One a task, in place of those before.
  void set_adapters(std::span<const costmodel::AdapterShape> adapters);
  std::int64_t layers() const { return shape_.layers; }
  /// All numbers of the adapters anew, at random: fresh ones mostly add nothing.
  void draw_parameters();
  /// That task's are no numbers any more.
  void poison(std::size_t task);
  /// By task, the sums of the adapters' gradients since the last call, which begin anew. Of devices without exact sums.
  std::vector<std::vector<float>> take_gradients();

  struct Passes {
    double forward_seconds = 0, backward_seconds = 0;
    std::vector<Probe::Record> forward, backward;  ///< empty where operators are not recorded
  };
  /// Forward through all microbatches of the point, and backward in reverse; their layers are this backbone's. Adapters
  /// must have been set. Shards do not meet.
  Passes run(const MeasuredPoint& point, bool records);

 private:
  costmodel::BackboneShape shape_;  // whole
  planner::LayerRange layers_;
  BufferPool pool_;
  Probe probe_;
  StageModel model_;
  std::vector<std::unique_ptr<Adapter>> adapters_;
};

}  // namespace braid::exec
