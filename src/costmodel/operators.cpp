#include "costmodel/operators.h"

#include <map>

#include "base/error.h"

namespace braid::costmodel {
namespace {

constexpr std::array<std::string_view, kOperatorCount> kOperatorNames = {
    "embedding", "rms_norm",  "linear",     "lora",           "lora_dropout", "rope",
    "attention", "swiglu",    "residual",   "head_loss",      "dispatch",     "squared_norm",
    "adamw",     "send_recv", "all_reduce", "reduce_scatter", "all_gather"};
constexpr std::array<std::string_view, 3> kPassNames = {"forward", "backward", "parameters"};

template <std::size_t N>
std::size_t place(const std::array<std::string_view, N>& names, std::string_view name, std::string_view what) {
  for (std::size_t i = 0; i < N; ++i) {
    if (names[i] == name) return i;
  }
  throw error("unknown {} '{}'; known: {}", what, name, fmt::join(names, ", "));
}

/// Collects the calls of the stage's layers; every layer does the same work, save the bottom one going backward.
class StageCalls {
 public:
  StageCalls(const BackboneShape& backbone, const StageShape& stage, const MicrobatchLoad& load)
      : backbone_(backbone), stage_(stage), load_(load) {}

  std::vector<OperatorCall> forward() {
    if (stage_.has_embedding)
      add(Operator::embedding, Pass::forward, {backbone_.vocabulary, backbone_.hidden}, load_.tokens, 1);
    const auto layers = static_cast<double>(stage_.layers);
    if (stage_.layers > 0) forward_layers(layers);
    if (stage_.has_head && load_.scored > 0) {
      add(Operator::head_loss, Pass::forward, {backbone_.hidden, backbone_.vocabulary}, load_.scored, 1);
    }
    add(Operator::dispatch, Pass::forward, {}, load_.tokens, 1);
    return std::move(calls_);
  }

  std::vector<OperatorCall> backward() {
    const double bottom = stage_.has_embedding && stage_.layers > 0 ? 1 : 0;
    backward_layers(static_cast<double>(stage_.layers) - bottom, bottom);
    add(Operator::dispatch, Pass::backward, {}, load_.tokens, 1);
    return std::move(calls_);
  }

 private:
  void add(Operator op, Pass pass, OperatorShape shape, std::int64_t tokens, double count) {
    if (count > 0 && tokens > 0) calls_.push_back({op, pass, shape, tokens, 0, 0, count});
  }

  void add_linear(Pass pass, std::int64_t in, std::int64_t out, double count) {
    add(Operator::linear, pass, {in, out}, load_.tokens, count);
  }

  void add_lora(Pass pass, ModuleGroup group, double count) {
    for (const TaskRows& task : load_.tasks) {
      const OperatorShape shape = lora_shape(backbone_, task.adapter, group);
      if (shape[3] == 0) continue;
      add(task.adapter.dropout > 0 ? Operator::lora_dropout : Operator::lora, pass, shape, task.tokens, count);
    }
  }

  bool any_lora(ModuleGroup group) const {
    for (const TaskRows& task : load_.tasks) {
      if (task.tokens > 0 && lora_shape(backbone_, task.adapter, group)[3] > 0) return true;
    }
    return false;
  }

  void add_attention(Pass pass, double count) {
    std::map<std::pair<std::int64_t, std::int64_t>, double> alike;
    for (const SequenceLoad& sequence : load_.sequences) alike[{sequence.prefix, sequence.context}] += count;
    for (const auto& [sequence, times] : alike) {
      const auto [prefix, context] = sequence;
      if (times <= 0) continue;
      calls_.push_back({Operator::attention,
                        pass,
                        {backbone_.heads, backbone_.kv_heads, backbone_.head_dim},
                        context - prefix,
                        context,
                        prefix,
                        times});
    }
  }

  void add_per_token(Operator op, Pass pass, OperatorShape shape, double count) {
    add(op, pass, shape, load_.tokens, count);
  }

  void forward_layers(double layers) {
    const std::int64_t hidden = backbone_.hidden;
    add_per_token(Operator::rms_norm, Pass::forward, {hidden}, 2 * layers);
    add_linear(Pass::forward, hidden, backbone_.qkv_width(), layers);
    add_lora(Pass::forward, ModuleGroup::qkv, layers);
    add_per_token(Operator::rope, Pass::forward, {backbone_.heads + backbone_.kv_heads, backbone_.head_dim}, layers);
    add_attention(Pass::forward, layers);
    add_linear(Pass::forward, backbone_.query_width(), hidden, layers);
    add_lora(Pass::forward, ModuleGroup::o, layers);
    add_per_token(Operator::residual, Pass::forward, {hidden}, 2 * layers);
    add_linear(Pass::forward, hidden, 2 * backbone_.intermediate, layers);
    add_lora(Pass::forward, ModuleGroup::gate_up, layers);
    add_per_token(Operator::swiglu, Pass::forward, {backbone_.intermediate}, layers);
    add_linear(Pass::forward, backbone_.intermediate, hidden, layers);
    add_lora(Pass::forward, ModuleGroup::down, layers);
  }

  /// What an adapter needs of its input is computed again rather than kept.
  void backward_layers(double inner, double bottom) {
    const double layers = inner + bottom;
    const std::int64_t hidden = backbone_.hidden;
    if (any_lora(ModuleGroup::down)) add_per_token(Operator::swiglu, Pass::forward, {backbone_.intermediate}, layers);
    add_linear(Pass::backward, backbone_.intermediate, hidden, layers);
    add_lora(Pass::backward, ModuleGroup::down, layers);
    add_per_token(Operator::swiglu, Pass::backward, {backbone_.intermediate}, layers);
    if (any_lora(ModuleGroup::gate_up)) add_per_token(Operator::rms_norm, Pass::forward, {hidden}, layers);
    add_linear(Pass::backward, hidden, 2 * backbone_.intermediate, layers);
    add_lora(Pass::backward, ModuleGroup::gate_up, layers);
    add_per_token(Operator::rms_norm, Pass::backward, {hidden}, layers);
    add_linear(Pass::backward, backbone_.query_width(), hidden, layers);
    add_lora(Pass::backward, ModuleGroup::o, layers);
    const bool attention_below = any_lora(ModuleGroup::qkv);
    const double through_attention = inner + (attention_below ? bottom : 0);
    add_attention(Pass::backward, through_attention);
    add_per_token(Operator::rope, Pass::backward, {backbone_.heads + backbone_.kv_heads, backbone_.head_dim},
                  through_attention);
    if (attention_below) add_per_token(Operator::rms_norm, Pass::forward, {hidden}, layers);
    add_linear(Pass::backward, hidden, backbone_.qkv_width(), inner);
    add_lora(Pass::backward, ModuleGroup::qkv, inner);
    add_lora(Pass::parameters, ModuleGroup::qkv, bottom);
    add_per_token(Operator::rms_norm, Pass::backward, {hidden}, inner);
  }

  const BackboneShape& backbone_;
  const StageShape& stage_;
  const MicrobatchLoad& load_;
  std::vector<OperatorCall> calls_;
};

}  // namespace

std::string_view name(Operator op) {
  return kOperatorNames[static_cast<std::size_t>(op)];
}

std::string_view name(Pass pass) {
  return kPassNames[static_cast<std::size_t>(pass)];
}

Operator operator_of(std::string_view name) {
  return static_cast<Operator>(place(kOperatorNames, name, "operator"));
}

Pass pass_of(std::string_view name) {
  return static_cast<Pass>(place(kPassNames, name, "pass"));
}

std::vector<Module> modules_of(ModuleGroup group) {
  switch (group) {
    case ModuleGroup::qkv:
      return {Module::q, Module::k, Module::v};
    case ModuleGroup::o:
      return {Module::o};
    case ModuleGroup::gate_up:
      return {Module::gate, Module::up};
    case ModuleGroup::down:
      break;
  }
  return {Module::down};
}

OperatorShape lora_shape(const BackboneShape& backbone, const AdapterShape& adapter, ModuleGroup group) {
  OperatorShape shape{0, 0, adapter.rank, 0};
  for (const Module module : modules_of(group)) {
    shape[0] = module_shape(backbone, module).in;
    if (!adapter.has(module)) continue;
    shape[1] += module_shape(backbone, module).out;
    ++shape[3];
  }
  return shape;
}

std::vector<OperatorCall> stage_operators(const BackboneShape& backbone, const StageShape& stage,
                                          const MicrobatchLoad& load, Pass pass) {
  StageCalls calls(backbone, stage, load);
  return pass == Pass::forward ? calls.forward() : calls.backward();
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
      flops += call.count * 2 * products * seen * static_cast<double>(call.shape[0] * call.shape[2]);
    }
  }
  return flops;
}

}  // namespace braid::costmodel
