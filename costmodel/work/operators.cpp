#include "costmodel/work/operators.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/error.h"

namespace braid::costmodel {
namespace {

struct OperatorWords {
  std::string_view name;
  ShapeSize size;
};

/// In the order of the enumeration.
constexpr std::array<OperatorWords, kOperatorCount> kOperators = {
    {{"embedding", {2, 2}},      {"rms_norm", {1, 1}},     {"layer_norm", {1, 1}},   {"head_norm", {3, 3}},
     {"linear", {2, 2}},         {"lora", {4, 4}},         {"lora_dropout", {4, 4}}, {"dora", {4, 4}},
     {"dora_dropout", {4, 4}},   {"vera", {4, 4}},         {"vera_dropout", {4, 4}}, {"ia3", {4, 4}},
     {"bottleneck", {4, 4}},     {"diff_pruning", {4, 4}}, {"fused_lora", {4, 4}},   {"fused_lora_dropout", {4, 4}},
     {"split_gradient", {1, 1}}, {"rope", {2, 2}},         {"attention", {3, 3}},    {"swiglu", {1, 1}},
     {"gelu", {1, 1}},           {"residual", {1, 1}},     {"head_loss", {2, 2}},    {"dispatch", {0, 0}},
     {"squared_norm", {0, 0}},   {"adamw", {0, 0}},        {"send_recv", {0, 2}},    {"all_reduce", {1, 2}},
     {"reduce_scatter", {1, 2}}, {"all_gather", {1, 2}},   {"copy", {0, 0}},         {"launch", {0, 0}},
     {"empty_kernel", {0, 0}}}};
constexpr std::array<std::string_view, kOperatorCount> kOperatorNames = [] {
  std::array<std::string_view, kOperatorCount> names;
  for (std::size_t i = 0; i < names.size(); ++i) names[i] = kOperators[i].name;
  return names;
}();
constexpr std::array<std::string_view, 4> kAdapterKernelNames = {"separate", "split", "side_by_side", "fused"};
constexpr std::array<std::string_view, 3> kPassNames = {"forward", "backward", "parameters"};

template <std::size_t N>
std::size_t place(const std::array<std::string_view, N>& names, std::string_view name, std::string_view what) {
  for (std::size_t i = 0; i < N; ++i) {
    if (names[i] == name) return i;
  }
  throw error("unknown {} '{}'; known: {}", what, name, fmt::join(names, ", "));
}

std::int64_t shares(std::int64_t whole, std::int64_t parts) {
  return (whole + parts - 1) / parts;
}

/// Collects the calls of the stage's layers; every layer does the same work, save the bottom one going backward.
class StageCalls {
 public:
  StageCalls(const BackboneShape& backbone, const StageShape& stage, const MicrobatchLoad& load, const Storage& storage)
      : whole_(backbone),
        divided_(stage.tp > 1 ? std::optional(shard_of(backbone, stage.tp)) : std::nullopt),
        shard_(divided_ ? *divided_ : backbone),
        stage_(stage),
        load_(load),
        storage_(storage) {
    constexpr std::size_t kOthers = 24;
    calls_.reserve(kOthers + load.sequences.size() + 4 * load.tasks.size());
  }

  std::vector<OperatorCall> forward() {
    if (stage_.has_embedding) {
      add(Operator::embedding, Pass::forward, {shard_.vocabulary, whole_.hidden}, load_.tokens, 1);
      // The learned position is added like another table's row.
      if (!whole_.rotary()) add(Operator::residual, Pass::forward, {whole_.hidden}, load_.tokens, 1);
    }
    const auto layers = static_cast<double>(stage_.layers);
    if (stage_.layers > 0) forward_layers(layers);
    if (stage_.has_head)
      add(Operator::head_loss, Pass::forward, {whole_.hidden, shard_.vocabulary}, head_rows(load_, storage_), 1);
    add(Operator::dispatch, Pass::forward, {}, load_.tokens, 1);
    return std::move(calls_);
  }

  std::vector<OperatorCall> backward() {
    const double bottom = stage_.has_embedding && stage_.layers > 0 ? 1 : 0;
    if (recomputed(RecomputeKind::full) > 0) forward_layers(recomputed(RecomputeKind::full));
    backward_layers(static_cast<double>(stage_.layers) - bottom, bottom);
    add(Operator::dispatch, Pass::backward, {}, load_.tokens, 1);
    return std::move(calls_);
  }

 private:
  void add(Operator op, Pass pass, OperatorShape shape, std::int64_t tokens, double count) {
    if (count <= 0 || tokens <= 0) return;
    OperatorCall& call = calls_.emplace_back();
    call.op = op;
    call.pass = pass;
    call.shape = shape;
    call.tokens = tokens;
    call.count = count;
  }

  /// Layers that are recomputed so.
  double recomputed(RecomputeKind kind) const {
    return stage_.recompute.kind == kind ? static_cast<double>(std::min(stage_.recompute.layers, stage_.layers)) : 0;
  }

  bool fuses() const { return load_.kernels == AdapterKernels::fused; }

  /// The frozen layer of a group, and with fused kernels the adapters' second product in it: r more of depth forward, r
  /// for each module going back.
  void add_linear(Pass pass, ModuleGroup group, std::int64_t in, std::int64_t out, double count) {
    std::int64_t tokens = load_.tokens;
    if (const std::optional<OperatorCall> fused = fuses() ? fused_call(pass, group) : std::nullopt) {
      // Rows are filled up; those without an adapter here go through the same tiles.
      tokens += fused->tokens - fused_rows(group);
      const std::int64_t depth = fused->shape[2];
      (pass == Pass::forward ? in : out) += depth * (pass == Pass::forward ? 1 : fused->shape[3]);
    }
    add(Operator::linear, pass, {in, out}, tokens, count);
  }

  bool adapts(const TaskRows& task, ModuleGroup group) const {
    return task.tokens > 0 && adapter_shape(whole_, task.adapter, group, stage_.tp)[3] > 0;
  }
  std::int64_t adapted_rows(ModuleGroup group) const {
    std::int64_t rows = 0;
    for (const TaskRows& task : load_.tasks) rows += adapts(task, group) ? task.tokens : 0;
    return rows;
  }

  std::int64_t fused_rows(ModuleGroup group) const {
    std::int64_t rows = 0;
    for (const TaskRows& task : load_.tasks)
      rows += adapts(task, group) && task.adapter.method == AdapterMethod::lora ? task.tokens : 0;
    return rows;
  }

  /// All tasks of a group in one call: tiles have room for the largest rank, and rows are filled up to whole tiles
  /// where several share a launch.
  std::optional<OperatorCall> fused_call(Pass pass, ModuleGroup group) const {
    OperatorCall call{Operator::fused_lora, pass};
    const auto adapted = std::count_if(load_.tasks.begin(), load_.tasks.end(), [&](const TaskRows& task) {
      return adapts(task, group) && task.adapter.method == AdapterMethod::lora;
    });
    for (const TaskRows& task : load_.tasks) {
      if (!adapts(task, group) || task.adapter.method != AdapterMethod::lora) continue;
      const OperatorShape shape = adapter_shape(whole_, task.adapter, group, stage_.tp);
      if (task.adapter.dropout > 0) call.op = Operator::fused_lora_dropout;
      call.shape = {shape[0], std::max(call.shape[1], shape[1]), std::max(call.shape[2], shape[2]),
                    std::max(call.shape[3], shape[3])};
      call.tokens += adapted > 1 ? shares(task.tokens, kFusedTileRows) * kFusedTileRows : task.tokens;
    }
    if (adapted == 0) return std::nullopt;
    return call;
  }

  void add_lora(Pass pass, ModuleGroup group, double count) {
    if (count <= 0) return;
    if (fuses()) {
      if (std::optional<OperatorCall> call = fused_call(pass, group)) {
        call->count = count;
        calls_.push_back(*call);
      }
    }
    bool first = true;
    for (const TaskRows& task : load_.tasks) {
      const OperatorShape shape = adapter_shape(whole_, task.adapter, group, stage_.tp);
      if (shape[3] == 0 || task.tokens == 0) continue;
      if (fuses() && task.adapter.method == AdapterMethod::lora) continue;
      add(operator_of(task.adapter), pass, shape, task.tokens, count);
      calls_.back().beside = load_.kernels == AdapterKernels::side_by_side && !first;
      first = false;
      if (load_.kernels == AdapterKernels::split && pass == Pass::backward)
        add(Operator::split_gradient, pass, {shape[0]}, load_.tokens, count * static_cast<double>(shape[3]));
    }
  }

  bool any_prefix() const {
    return std::any_of(load_.tasks.begin(), load_.tasks.end(),
                       [](const TaskRows& task) { return task.tokens > 0 && task.adapter.virtual_tokens() > 0; });
  }

  bool any_lora(ModuleGroup group) const { return adapted_rows(group) > 0; }

  void add_attention(Pass pass, double count) {
    if (count <= 0) return;
    // Sequences alike are one call.
    const std::size_t first = calls_.size();
    for (const SequenceLoad& sequence : load_.sequences) {
      const std::int64_t prefix = sequence.prefix + sequence.virtual_tokens,
                         context = sequence.context + sequence.virtual_tokens;
      const auto begin = calls_.begin() + static_cast<std::ptrdiff_t>(first);
      const auto alike = std::find_if(begin, calls_.end(), [&](const OperatorCall& call) {
        return call.context == context && call.prefix == prefix;
      });
      if (alike != calls_.end()) {
        ++alike->sequences;
        continue;
      }
      calls_.push_back({Operator::attention,
                        pass,
                        {shard_.heads, shard_.kv_heads, shard_.head_dim},
                        context - prefix,
                        context,
                        prefix,
                        count});
      // One launch attends within every sequence of a microbatch.
      calls_.back().beside = calls_.size() > first + 1;
    }
  }

  /// Between the linear layers every rank works on all tokens, or with sequence parallelism on its share of them.
  void add_between(Operator op, Pass pass, double count) {
    const std::int64_t tokens = stage_.sequence_parallel ? (load_.tokens + stage_.tp - 1) / stage_.tp : load_.tokens;
    add(op, pass, {whole_.hidden}, tokens, count);
  }
  /// A layer's operator but for the adapters beside it, `count` times.
  void add_op(const LayerOp& op, Pass pass, double count) {
    const Operator charged = operator_of(whole_, op.work);
    switch (op.work) {
      case LayerWork::norm:
      case LayerWork::residual:
        return add_between(charged, pass, count);
      case LayerWork::linear:
        return add_linear(pass, op.group, width(shard_, op.from), width(shard_, op.to), count);
      case LayerWork::head_norm:
        return add(charged, pass, {shard_.heads, shard_.kv_heads, shard_.head_dim}, load_.tokens, count);
      case LayerWork::rope:
        return add(charged, pass, {shard_.heads + shard_.kv_heads, shard_.head_dim}, load_.tokens, count);
      case LayerWork::attention:
        return add_attention(pass, count);
      case LayerWork::activation:
        return add(charged, pass, {shard_.intermediate}, load_.tokens, count);
    }
  }

  void forward_layers(double layers) {
    const std::span<const LayerOp> ops = layer_ops(whole_);
    for (auto op = ops.begin(); op != ops.end(); ++op) {
      const auto alike = [&](const LayerOp& other) { return other.work == op->work; };
      double count = layers;
      // The norms of a layer are one call, and so are its residuals: where the first stands.
      if (op->work == LayerWork::norm || op->work == LayerWork::residual) {
        if (std::any_of(ops.begin(), op, alike)) continue;
        count *= static_cast<double>(std::count_if(ops.begin(), ops.end(), alike));
      }
      add_op(*op, Pass::forward, count);
      if (op->work == LayerWork::linear) add_lora(Pass::forward, op->group, layers);
    }
  }

  /// Of what a linear layer's adapters read: how often it is computed again, as it was not kept or its layer is
  /// recomputed selectively.
  double again(const LayerOp& linear, double layers) const {
    const LayerOp& writer = writer_of(layer_ops(whole_), linear.from);
    if (!writer.kept && !storage_.keeps_operator_inputs && any_lora(linear.group)) return layers;
    return recomputed_selectively(writer.work) ? recomputed(RecomputeKind::selective) : 0;
  }

  /// `inner` layers, and `bottom` (0 or 1) that have no layer below: of those only adapters need a gradient, and none
  /// of what comes before the lowest.
  void backward_layers(double inner, double bottom) {
    const double layers = inner + bottom;
    const std::span<const LayerOp> ops = layer_ops(whole_);
    const auto is_linear = [](const LayerOp& op) { return op.work == LayerWork::linear; };
    const auto lowest = std::find_if(ops.begin(), ops.end(), is_linear);
    const auto second = std::find_if(lowest + 1, ops.end(), is_linear);
    const double below_attention = inner + (any_lora(lowest->group) ? bottom : 0);
    const double through_attention = inner + (any_lora(lowest->group) || any_prefix() ? bottom : 0);
    for (auto op = ops.end(); op-- != ops.begin();) {
      if (op->work == LayerWork::residual) continue;  // the gradient of either input is that of the sum
      if (op->work == LayerWork::linear) {
        const LayerOp& writer = writer_of(ops, op->from);
        add_op(writer, Pass::forward, again(*op, layers));
      }
      const double between = op->work == LayerWork::attention ? through_attention : below_attention;
      add_op(*op, Pass::backward, op <= lowest ? inner : op < second ? between : layers);
      if (op->work != LayerWork::linear) continue;
      add_lora(Pass::backward, op->group, op == lowest ? inner : layers);
      if (op == lowest) add_lora(Pass::parameters, op->group, bottom);
    }
  }

  const BackboneShape& whole_;
  const std::optional<BackboneShape> divided_;
  const BackboneShape& shard_;
  const StageShape& stage_;
  const MicrobatchLoad& load_;
  const Storage& storage_;
  std::vector<OperatorCall> calls_;
};

}  // namespace

Operator operator_of(const BackboneShape& backbone, LayerWork work) {
  switch (work) {
    case LayerWork::norm:
      return backbone.gated() ? Operator::rms_norm : Operator::layer_norm;
    case LayerWork::linear:
      return Operator::linear;
    case LayerWork::head_norm:
      return Operator::head_norm;
    case LayerWork::rope:
      return Operator::rope;
    case LayerWork::attention:
      return Operator::attention;
    case LayerWork::activation:
      return backbone.gated() ? Operator::swiglu : Operator::gelu;
    case LayerWork::residual:
      break;
  }
  return Operator::residual;
}

Operator operator_of(const AdapterShape& adapter) {
  const bool drops = adapter.dropout > 0;
  switch (adapter.method) {
    case AdapterMethod::dora:
      return drops ? Operator::dora_dropout : Operator::dora;
    case AdapterMethod::vera:
      return drops ? Operator::vera_dropout : Operator::vera;
    case AdapterMethod::ia3:
      return Operator::ia3;
    case AdapterMethod::bottleneck:
      return Operator::bottleneck;
    case AdapterMethod::diff_pruning:
      return Operator::diff_pruning;
    case AdapterMethod::lora:
    case AdapterMethod::prefix_tuning:  // has no product
      break;
  }
  return drops ? Operator::lora_dropout : Operator::lora;
}

ShapeSize shape_size(Operator op) {
  return kOperators[static_cast<std::size_t>(op)].size;
}

std::string_view name(Operator op) {
  return kOperatorNames[static_cast<std::size_t>(op)];
}

std::string_view name(Pass pass) {
  return kPassNames[static_cast<std::size_t>(pass)];
}

std::string_view name(AdapterKernels kernels) {
  return kAdapterKernelNames[static_cast<std::size_t>(kernels)];
}

Operator operator_of(std::string_view name) {
  return static_cast<Operator>(place(kOperatorNames, name, "operator"));
}

Pass pass_of(std::string_view name) {
  return static_cast<Pass>(place(kPassNames, name, "pass"));
}

StageShape run_of(const StageShape& stage, std::int64_t first, std::int64_t count) {
  StageShape run = stage;
  run.layers = count;
  run.has_embedding = run.has_head = false;
  run.recompute = stage.recompute.of_run(first, count);
  return run;
}

BackboneShape shard_of(const BackboneShape& backbone, std::int64_t tp) {
  if (tp <= 1) return backbone;
  BackboneShape shard = backbone;
  shard.heads = shares(backbone.heads, tp);
  shard.kv_heads = shares(backbone.kv_heads, tp);
  shard.intermediate = shares(backbone.intermediate, tp);
  shard.vocabulary = shares(backbone.vocabulary, tp);
  return shard;
}

OperatorShape adapter_shape(const BackboneShape& backbone, const AdapterShape& adapter, ModuleGroup group,
                            std::int64_t tp) {
  OperatorShape shape{0, 0, adapter.rank, 0};
  if (adapter.method == AdapterMethod::prefix_tuning) return shape;
  const bool scales = adapter.method == AdapterMethod::ia3;
  std::int64_t numbers = 0, differences = 0;
  const std::optional<BackboneShape> shard = tp > 1 ? std::optional(shard_of(backbone, tp)) : std::nullopt;
  for (const Module module : targets_of(group)) {
    const ModuleShape whole = module_shape(backbone, module);
    const ModuleShape part = shard ? module_shape(*shard, module) : whole;
    const std::int64_t in = splits_rows(group) ? part.in : whole.in;
    if (!scales) shape[0] = in;
    if (!adapter.has(module)) continue;
    const std::int64_t out = splits_rows(group) ? whole.out : part.out;
    ++shape[3];
    if (adapter.method == AdapterMethod::bottleneck) return {whole.out, whole.out, adapter.rank, 1};
    if (scales) {
      shape[0] += adapter.scales_input(module) ? in : out;
      shape[1] = shape[0];
      shape[2] = adapter.scales_input(module) ? 1 : 2;
      continue;
    }
    shape[1] += out;
    numbers += adapter.rank_of(module) * (in + out);
    differences += shares(adapter.differences(backbone, module), tp);
  }
  if (shape[3] > 0 && !scales) shape[2] = shares(numbers, shape[3] * shape[0] + shape[1]);
  if (adapter.method == AdapterMethod::diff_pruning) shape[2] = differences;
  return shape;
}

std::vector<OperatorCall> stage_operators(const BackboneShape& backbone, const StageShape& stage,
                                          const MicrobatchLoad& load, Pass pass, const Storage& storage) {
  StageCalls calls(backbone, stage, load, storage);
  return pass == Pass::forward ? calls.forward() : calls.backward();
}

std::vector<OperatorCall> stage_collectives(const BackboneShape& backbone, const StageShape& stage,
                                            const MicrobatchLoad& load, Pass pass, const Storage& storage) {
  std::vector<OperatorCall> calls;
  if (stage.tp <= 1 || load.tokens <= 0) return calls;
  const auto sum_up = [&](std::int64_t rows, std::int64_t numbers, double count) {
    const std::int64_t bytes = rows * numbers * bytes_of(storage.activations);
    if (bytes <= 0 || count <= 0) return;
    const OperatorShape shape{stage.tp};
    if (stage.sequence_parallel) {
      calls.push_back({Operator::reduce_scatter, Pass::forward, shape, bytes, 0, 0, count});
      calls.push_back({Operator::all_gather, Pass::forward, shape, bytes, 0, 0, count});
    } else {
      calls.push_back({Operator::all_reduce, Pass::forward, shape, bytes, 0, 0, count});
    }
  };
  const auto layers = static_cast<double>(stage.layers);
  const bool bottom = pass == Pass::backward && stage.has_embedding && stage.layers > 0;
  sum_up(load.tokens, backbone.hidden, 2 * layers - (bottom ? 1 : 0));
  if (pass == Pass::backward && stage.recompute.kind == RecomputeKind::full)
    sum_up(load.tokens, backbone.hidden, 2 * static_cast<double>(std::min(stage.recompute.layers, stage.layers)));
  if (pass == Pass::forward && stage.has_embedding) {
    sum_up(load.tokens, backbone.hidden, 1);
    // The first norm works on the share that the reduce-scatter leaves.
    if (stage.sequence_parallel) calls.pop_back();
  }
  if (pass == Pass::forward && stage.has_head) {
    // A maximum, a sum and the label's logit a row, in f32; then the gradient of the hidden state.
    const std::int64_t rows = head_rows(load, storage), bytes = 3 * 4 * rows;
    if (bytes > 0) calls.push_back({Operator::all_reduce, Pass::forward, {stage.tp}, bytes, 0, 0, 1});
    sum_up(rows, backbone.hidden, 1);
  }
  return calls;
}

double backbone_flops(const std::vector<OperatorCall>& calls) {
  double flops = 0;
  for (const OperatorCall& call : calls) {
    const auto tokens = static_cast<double>(call.tokens);
    const double weights = static_cast<double>(call.shape[0]) * static_cast<double>(call.shape[1]);
    if (call.op == Operator::linear) flops += call.count * 2 * tokens * weights;
    // Forward and input gradient in one.
    if (call.op == Operator::head_loss) flops += call.count * 4 * tokens * weights;
    if (call.op == Operator::attention) {
      const double seen = tokens * (static_cast<double>(call.prefix) + (tokens + 1) / 2);
      const double products = call.pass == Pass::forward ? 2 : 5;
      flops += call.count * static_cast<double>(call.sequences) * 2 * products * seen *
               static_cast<double>(call.shape[0] * call.shape[2]);
    }
  }
  return flops;
}

}  // namespace braid::costmodel
