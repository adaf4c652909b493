#include "exec/layer_weights.h"

#include <cmath>
#include <numbers>

#include "base/error.h"

namespace braid::exec {
namespace {

using kernels::ConstMatrix;
using kernels::cpu::PackedLinear;

/// Some linear layers of one input, stacked along their outputs.
struct Stacked {
  std::vector<float> weight;
  std::vector<float> bias;
  std::int64_t out = 0;
};

class LayerReader {
 public:
  LayerReader(const SafetensorsFolder& tensors, const costmodel::BackboneShape& backbone, std::int32_t layer)
      : tensors_(tensors), backbone_(backbone), prefix_(fmt::format("model.layers.{}.", layer)) {}

  std::vector<float> norm(const char* name) const {
    return tensors_.read_f32(prefix_ + name + ".weight", {backbone_.hidden});
  }

  PackedLinear linear(std::initializer_list<costmodel::Module> modules, bool bias, bool backward) const {
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
    return PackedLinear(ConstMatrix(stacked.weight.data(), stacked.out, in), stacked.bias, backward);
  }

 private:
  const SafetensorsFolder& tensors_;
  const costmodel::BackboneShape& backbone_;
  std::string prefix_;
};

LayerWeights load_layer(const SafetensorsFolder& tensors, const costmodel::BackboneShape& backbone,
                        std::int32_t layer) {
  using costmodel::Module;
  const LayerReader reader(tensors, backbone, layer);
  // Nothing below the first layer's projections needs a gradient.
  const bool qkv_backward = layer > 0;
  return {reader.norm("input_layernorm"),
          reader.norm("post_attention_layernorm"),
          reader.linear({Module::q, Module::k, Module::v}, backbone.qkv_bias, qkv_backward),
          reader.linear({Module::o}, false, true),
          reader.linear({Module::gate, Module::up}, false, true),
          reader.linear({Module::down}, false, true)};
}

}  // namespace

StageWeights load_stage_weights(const SafetensorsFolder& tensors, const costmodel::BackboneShape& backbone,
                                planner::LayerRange layers) {
  if (const std::string beyond = fmt::format("model.layers.{}.input_layernorm.weight", backbone.layers);
      const TensorInfo* tensor = tensors.find(beyond)) {
    throw error("{}: holds '{}', but config.json says {} layers; give the config.json of these weights",
                tensor->file.string(), beyond, backbone.layers);
  }
  StageWeights weights;
  weights.rope_frequencies = rope_frequencies(backbone);
  const std::string embedding_name = "model.embed_tokens.weight";
  if (layers.first == 0) weights.embedding = tensors.read_f32(embedding_name, {backbone.vocabulary, backbone.hidden});
  for (std::int32_t layer = layers.first; layer < layers.last; ++layer)
    weights.layers.push_back(load_layer(tensors, backbone, layer));
  if (layers.last == backbone.layers) {
    weights.final_norm = tensors.read_f32("model.norm.weight", {backbone.hidden});
    const std::vector<float> head = tensors.read_f32(backbone.tied_head ? embedding_name : "lm_head.weight",
                                                     {backbone.vocabulary, backbone.hidden});
    weights.head.emplace_back(ConstMatrix(head.data(), backbone.vocabulary, backbone.hidden), std::span<const float>{});
  }
  return weights;
}

std::vector<float> rope_frequencies(const costmodel::BackboneShape& backbone) {
  std::vector<float> frequencies;
  const costmodel::RopeScaling& scaling = backbone.rope_scaling;
  for (std::int64_t i = 0; i < backbone.head_dim / 2; ++i) {
    double frequency =
        std::pow(backbone.rope_theta, -2.0 * static_cast<double>(i) / static_cast<double>(backbone.head_dim));
    if (scaling.llama3) {
      const double wavelength = 2 * std::numbers::pi / frequency;
      const double longest = scaling.original_max_position / scaling.low_frequency_factor;
      const double shortest = scaling.original_max_position / scaling.high_frequency_factor;
      if (wavelength > longest) {
        frequency /= scaling.factor;
      } else if (wavelength >= shortest) {
        const double smooth = (scaling.original_max_position / wavelength - scaling.low_frequency_factor) /
                              (scaling.high_frequency_factor - scaling.low_frequency_factor);
        frequency = (1 - smooth) * frequency / scaling.factor + smooth * frequency;
      }
    }
    frequencies.push_back(static_cast<float>(frequency));
  }
  return frequencies;
}

}  // namespace braid::exec
