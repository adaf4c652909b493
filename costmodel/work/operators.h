#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/units.h"
#include "costmodel/shapes/adapter.h"
#include "costmodel/shapes/backbone.h"
#include "costmodel/shapes/layer_ops.h"
#include "costmodel/work/recompute.h"
#include "costmodel/work/storage.h"

namespace braid::costmodel {

/// Every kind of work that a profile has entries for. Names and the meaning of `shape` stand in one table in
/// operators.cpp; whoever measures or charges work uses these.
enum class Operator {
  embedding,     ///< shape {V, H}
  rms_norm,      ///< {H}
  layer_norm,    ///< {H}
  head_norm,     ///< {heads, kv_heads, D}: an RMS norm of each query and key head
  linear,        ///< {in, out}, frozen
  lora,          ///< {in, sum of out, rank, modules}: the modules of one input, dropout 0
  lora_dropout,  ///< the same with dropout, masks included
  dora,          ///< the same, with the scaled product
  dora_dropout,  ///< and with the frozen product of the masked inputs
  vera,          ///< {in, sum of out, rank, modules}
  vera_dropout,
  ia3,           ///< {columns, columns, 1 of scaled inputs or 2 of outputs, modules}
  bottleneck,    ///< {H, H, width between, 1}
  diff_pruning,  ///< {in, sum of out, numbers of the differences, modules}
  fused_lora,  ///< the same: what LoRAFusion's kernels do beside the frozen layer's product, which has r more of depth
  fused_lora_dropout,  ///< the same with dropout: masked inputs are kept too
  split_gradient,      ///< {in}: BatchLoRA's split, derived by autograd; mLoRA prunes it
  rope,                ///< {heads + kv_heads, D}
  attention,           ///< {heads, kv_heads, D}; context is each sequence's length
  swiglu,              ///< {F}
  gelu,                ///< {F}; also ReLU: one input, one result
  residual,            ///< {H}
  head_loss,       ///< {H, V}: final norm, head, cross-entropy and the gradient back to the hidden state; of head_rows
  dispatch,        ///< {}: what one Forward or Backward costs beside its operators
  squared_norm,    ///< {}: tokens counts numbers
  adamw,           ///< {}: tokens counts numbers
  send_recv,       ///< {}, between nodes {2, 2}: tokens counts bytes
  all_reduce,      ///< {ranks}, over several nodes {ranks, nodes}: tokens counts bytes
  reduce_scatter,  ///< likewise: bytes before
  all_gather,      ///< likewise: bytes after
  copy,            ///< {}: a kernel that only copies; tokens counts bytes read and written
  launch,          ///< {}: the host's time to start a kernel
  empty_kernel     ///< {}: a kernel's time on the device that does nothing, others around it
};
inline constexpr int kOperatorCount = 33;

/// Operators that ranks do together.
constexpr bool is_collective(Operator op) {
  return op == Operator::send_recv || op == Operator::all_reduce || op == Operator::reduce_scatter ||
         op == Operator::all_gather;
}

/// Adapters of one task.
constexpr bool is_adapter(Operator op) {
  return op >= Operator::lora && op <= Operator::diff_pruning;
}
/// That of an adapter's work beside a frozen product.
Operator operator_of(const AdapterShape& adapter);
/// Adapters of all tasks of a microbatch, beside the frozen layer's product that holds their second one.
constexpr bool is_fused_adapter(Operator op) {
  return op == Operator::fused_lora || op == Operator::fused_lora_dropout;
}

/// `parameters` is a backward pass that needs no gradient of its input: the bottom of the first stage.
enum class Pass { forward, backward, parameters };

/// How many numbers the operator's shape has, at least and at most.
struct ShapeSize {
  std::size_t least = 0;
  std::size_t most = 0;
};
ShapeSize shape_size(Operator op);

/// The operator that does a layer's work on that backbone, frozen layers apart from their adapters.
Operator operator_of(const BackboneShape& backbone, LayerWork work);

std::string_view name(Operator op);
std::string_view name(Pass pass);
/// Throw Error that lists what is known.
Operator operator_of(std::string_view name);
Pass pass_of(std::string_view name);

/// Numbers past the operator's own are 0.
using OperatorShape = std::array<std::int64_t, 4>;

/// One kind of work, done `count` times.
struct OperatorCall {
  Operator op = Operator::linear;
  Pass pass = Pass::forward;
  OperatorShape shape{};
  std::int64_t tokens = 0;
  std::int64_t context = 0;  ///< attention: keys that the last token sees
  std::int64_t prefix = 0;   ///< attention: keys stored by earlier chunks of the sample
  double count = 1;
  std::int64_t sequences = 1;  ///< attention: so many alike in one launch
  bool beside = false;         ///< its kernels run in the launches of the call before it (MuxTune's horizontal fusion)
  bool operator==(const OperatorCall&) const = default;
};

/// How a GPU runs the adapters of a microbatch of several tasks; the frozen layers run once for all of them.
enum class AdapterKernels {
  separate,      ///< task by task, added to the task's rows in place: PEFT with one task, mLoRA's pruned BatchLoRA
  split,         ///< BatchLoRA as autograd derives it: the input's gradient is put together from the tasks' and added
  side_by_side,  ///< one launch holds all tasks' kernels (MuxTune §3.4.3, costed by Eq. 3)
  fused          ///< LoRAFusion's FusedLoRA, of several tasks FusedMultiLoRA
};
std::string_view name(AdapterKernels kernels);

/// The shape of `operator_of(adapter)` for the group's targets on one of `tp` shards; modules is 0 when there are none.
/// Of LoRA and its like {in, sum of out, rank, modules}; of
/// targets with unlike ranks the one rank with which they would hold as many numbers, rounded up.
/// Where the frozen layer's columns are split (qkv, gate_up) so are B's; where its rows are (o, down) so are A's, and
/// the partial sums of both meet in one all-reduce.
OperatorShape adapter_shape(const BackboneShape& backbone, const AdapterShape& adapter, ModuleGroup group,
                            std::int64_t tp = 1);

/// A run of a microbatch's rows that belongs to one task.
struct TaskRows {
  AdapterShape adapter;
  std::int64_t tokens = 0;
  bool operator==(const TaskRows&) const = default;
};

/// A sequence in a microbatch: tokens [prefix, context) of a sample, padding counted as tokens.
struct SequenceLoad {
  std::int64_t prefix = 0;
  std::int64_t context = 0;
  bool continues = false;           ///< later chunks of the sample read its keys and values
  std::int64_t virtual_tokens = 0;  ///< keys and values of its task's adapter, before all others
  bool operator==(const SequenceLoad&) const = default;
};

/// All that a microbatch's cost depends on.
struct MicrobatchLoad {
  std::int64_t tokens = 0;  ///< computed
  std::int64_t scored = 0;  ///< rows with a loss
  std::vector<SequenceLoad> sequences;
  std::vector<TaskRows> tasks;
  AdapterKernels kernels = AdapterKernels::separate;
  bool operator==(const MicrobatchLoad&) const = default;
};

/// Rows of a microbatch that the head works on.
inline std::int64_t head_rows(const MicrobatchLoad& load, const Storage& storage) {
  return storage.whole_logits ? load.tokens : load.scored;
}

/// Rows of a tile of LoRAFusion's kernels. A tile serves one adapter, so that tasks' rows are filled up to it.
inline constexpr std::int64_t kFusedTileRows = 128;

/// The part of a backbone that one rank holds: one of `tp` shards of some layers.
struct StageShape {
  std::int64_t layers = 0;
  bool has_embedding = false;
  bool has_head = false;
  std::int64_t tp = 1;
  /// Norms and residuals work on a tp-th of the tokens (Korthikanti et al. 2022); all-reduces become reduce-scatters
  /// and all-gathers.
  bool sequence_parallel = false;
  Recompute recompute = {};
  bool operator==(const StageShape&) const = default;
};
/// A run of `count` of the stage's layers that begins `first` layers above its lowest, without embedding and head.
StageShape run_of(const StageShape& stage, std::int64_t first, std::int64_t count);

/// The shape of the backbone that one of `tp` shards computes: heads, feed-forward columns and vocabulary divided,
/// rounded up; key/value heads kept where there are fewer than shards.
BackboneShape shard_of(const BackboneShape& backbone, std::int64_t tp);

/// The work of one Forward or Backward (`pass` forward or backward) of a stage, by an executor that stores things so:
/// what it does not keep, or the stage recomputes, a Backward computes again. braid's own executor does just this work;
/// a test holds its record against this list.
std::vector<OperatorCall> stage_operators(const BackboneShape& backbone, const StageShape& stage,
                                          const MicrobatchLoad& load, Pass pass, const Storage& storage);

/// The collectives of one Forward or Backward of a stage's tensor-parallel ranks: none for tp = 1. Each layer's two
/// partial sums meet forward, and once more going back where the whole layer is recomputed; the gradients of its two
/// inputs backward (Shoeybi et al. 2019), save the bottom layer's first, which nothing needs; the embedding's rows and
/// the head's maxima, sums and gradient on their stages.
std::vector<OperatorCall> stage_collectives(const BackboneShape& backbone, const StageShape& stage,
                                            const MicrobatchLoad& load, Pass pass, const Storage& storage);

/// Multiply-add FLOPs (2 a multiply-add) of the frozen linear layers and of attention, causal halves skipped; adapters
/// are not counted, save what fused kernels do of them inside the frozen layer's product.
double backbone_flops(const std::vector<OperatorCall>& calls);

}  // namespace braid::costmodel
