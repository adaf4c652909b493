#include "exec/layer_weights.h"

#include "base/error.h"
#include "exec/rope_frequencies.h"
#include "exec/weight_names.h"

namespace braid::exec {
namespace {

using kernels::ConstMatrix;
using kernels::FrozenLinear;

/// Some linear layers of one input, stacked along their outputs.
struct Stacked {
  std::vector<float> weight;
  std::vector<float> bias;
  std::int64_t out = 0;
};

class LayerReader {
 public:
  LayerReader(const SafetensorsFolder& tensors, const costmodel::BackboneShape& backbone,
              const kernels::Kernels& kernels, std::string prefix)
      : tensors_(tensors), backbone_(backbone), kernels_(kernels), prefix_(std::move(prefix)) {}

  std::vector<float> norm(const char* name) const {
    return tensors_.read_f32(prefix_ + name + ".weight", {backbone_.hidden});
  }

  /// Of the backbones that have none, nothing.
  std::vector<float> head_norm(const char* name) const {
    if (!backbone_.qk_norm) return {};
    return tensors_.read_f32(prefix_ + "self_attn." + name + ".weight", {backbone_.head_dim});
  }

  std::unique_ptr<FrozenLinear> linear(std::initializer_list<costmodel::Module> modules, bool bias,
                                       bool backward) const {
    Stacked stacked;
    std::int64_t in = 0;
    for (const costmodel::Module module : modules) {
      const costmodel::ModuleShape shape = costmodel::module_shape(backbone_, module);
      const bool attention = module == costmodel::Module::q || module == costmodel::Module::k ||
                             module == costmodel::Module::v || module == costmodel::Module::o;
      const std::string name =
          prefix_ + (attention ? "self_attn." : "mlp.") + std::string(costmodel::module_name(module));
      in = shape.in;
      stacked.out += shape.out;
      stacked.weight.resize(static_cast<std::size_t>(stacked.out * in));
      tensors_.read_f32_into(name + ".weight", {shape.out, in},
                             std::span(stacked.weight).last(static_cast<std::size_t>(shape.out * in)));
      if (!bias) continue;
      const std::vector<float> values = tensors_.read_f32(name + ".bias", {shape.out});
      stacked.bias.insert(stacked.bias.end(), values.begin(), values.end());
    }
    return kernels_.pack_linear(ConstMatrix(stacked.weight.data(), stacked.out, in), stacked.bias, backward);
  }

 private:
  const SafetensorsFolder& tensors_;
  const costmodel::BackboneShape& backbone_;
  const kernels::Kernels& kernels_;
  std::string prefix_;
};

LayerWeights load_layer(const SafetensorsFolder& tensors, const costmodel::BackboneShape& backbone,
                        const WeightNames& names, std::int32_t layer, const kernels::Kernels& kernels) {
  using costmodel::Module;
  const LayerReader reader(tensors, backbone, kernels, names.layer(layer));
  // Nothing below the first layer's projections needs a gradient.
  const bool qkv_backward = layer > 0;
  return {reader.norm("input_layernorm"),
          reader.norm("post_attention_layernorm"),
          reader.linear({Module::q, Module::k, Module::v}, backbone.qkv_bias, qkv_backward),
          reader.linear({Module::o}, false, true),
          reader.linear({Module::gate, Module::up}, false, true),
          reader.linear({Module::down}, false, true),
          reader.head_norm("q_norm"),
          reader.head_norm("k_norm")};
}

}  // namespace

StageWeights load_stage_weights(const SafetensorsFolder& tensors, const costmodel::BackboneShape& backbone,
                                planner::LayerRange layers, const kernels::Kernels& kernels) {
  const WeightNames names(tensors, backbone);
  StageWeights weights;
  weights.rope_frequencies = rope_frequencies(backbone);
  const std::vector<std::int64_t> table = {backbone.vocabulary, backbone.hidden};
  if (layers.first == 0) weights.embedding = tensors.read_f32(names.embedding(), table);
  for (std::int32_t layer = layers.first; layer < layers.last; ++layer)
    weights.layers.push_back(load_layer(tensors, backbone, names, layer, kernels));
  if (layers.last == backbone.layers) {
    weights.final_norm = tensors.read_f32(names.final_norm(), {backbone.hidden});
    const std::vector<float> head = tensors.read_f32(names.head(), table);
    weights.head = kernels.pack_linear(ConstMatrix(head.data(), backbone.vocabulary, backbone.hidden), {}, true);
  }
  return weights;
}

}  // namespace braid::exec
