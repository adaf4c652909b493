#include "exec/layer_weights.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "exec/rope_frequencies.h"
#include "exec/weight_names.h"

namespace braid::exec {
namespace {

using costmodel::Module;
using costmodel::ModuleGroup;
using kernels::ConstMatrix;

/// A tensor's numbers, all of which must be finite.
std::vector<float> read_finite(const SafetensorsFolder& tensors, const std::string& name,
                               const std::vector<std::int64_t>& shape) {
  std::vector<float> numbers = tensors.read_f32(name, shape);
  const auto broken = std::find_if(numbers.begin(), numbers.end(), [](float number) { return !std::isfinite(number); });
  if (broken != numbers.end())
    throw error("{}: tensor '{}' holds {} at {}, with which nothing can be computed; fetch the backbone again",
                tensors.find(name)->file.string(), name, *broken, broken - numbers.begin());
  return numbers;
}

/// A norm's tensors: of the layer norms a bias too.
NormWeights read_norm(const SafetensorsFolder& tensors, const std::string& name, std::int64_t width, bool bias) {
  NormWeights norm{read_finite(tensors, name + ".weight", {width}), {}};
  if (bias) norm.bias = read_finite(tensors, name + ".bias", {width});
  return norm;
}

/// A rank's rows and columns of a layer's tensors.
class LayerReader {
 public:
  LayerReader(const SafetensorsFolder& tensors, const WeightNames& names, const Shard& shard,
              const kernels::Kernels& kernels, kernels::WeightType type, std::int32_t layer)
      : tensors_(tensors), names_(names), shard_(shard), kernels_(kernels), type_(type), layer_(layer) {}

  LayerWeights read() {
    const costmodel::BackboneShape& backbone = shard_.whole();
    LayerWeights weights;
    for (const costmodel::LayerOp& op : costmodel::layer_ops(backbone)) {
      if (op.work == costmodel::LayerWork::norm) {
        weights.norms[static_cast<std::size_t>(op.to)] =
            read_norm(tensors_, names_.norm(layer_, op.to), backbone.hidden, !backbone.gated());
      } else if (op.work == costmodel::LayerWork::linear) {
        const bool bottom = op.group == ModuleGroup::qkv && layer_ == 0;  // nothing below needs a gradient
        weights.products[static_cast<std::size_t>(op.group)] = product(op.group, !bottom);
      } else if (op.work == costmodel::LayerWork::head_norm) {
        weights.query_norm = read_norm(tensors_, names_.query_norm(layer_), backbone.head_dim, false);
        weights.key_norm = read_norm(tensors_, names_.key_norm(layer_), backbone.head_dim, false);
      }
    }
    weights.row_squares = std::move(squares_);
    join_qkv_squares(weights);
    return weights;
  }

 private:
  /// The modules of a group, stacked along their outputs. Of partial sums one shard adds the bias.
  std::unique_ptr<kernels::FrozenLinear> product(ModuleGroup group, bool backward) {
    std::vector<float> weight, biases;
    std::int64_t in = 0, out = 0;
    const bool bias = has_bias(shard_.whole(), group) && (!splits_rows(group) || shard_.place() == 0);
    for (const Module module : costmodel::modules_of(shard_.whole(), group)) {
      const ModuleTensor tensor = names_.module(layer_, module);
      const Share rows = shard_.outputs(module), columns = shard_.inputs(module);
      const Share stored{tensor.first + rows.first, tensor.first + rows.last};
      append(weight_of(tensor), tensor.in, stored, columns, weight);
      keep_squares(tensor, module);
      in = columns.count();
      out += rows.count();
      if (bias) append(read_finite(tensors_, tensor.name + ".bias", {tensor.out}), 1, stored, {0, 1}, biases);
    }
    return kernels_.pack_linear(ConstMatrix(weight.data(), out, in), biases, backward, type_);
  }

  /// Of the numbers as they are held.
  void keep_squares(const ModuleTensor& tensor, Module module) {
    const std::int64_t rows = costmodel::module_shape(shard_.whole(), module).out;
    const ConstMatrix given(last_.data() + tensor.first * tensor.in, rows, tensor.in);
    std::vector<float>& squares = squares_[static_cast<std::size_t>(module)];
    std::vector<float> rounded;
    if (type_ != kernels::WeightType::f32) {
      rounded.resize(static_cast<std::size_t>(rows * tensor.in));
      kernels::CompressedWeight(given, type_).widen(0, 0, {rounded.data(), rows, tensor.in});
    }
    for (std::int64_t row = 0; row < rows; ++row)
      squares.push_back(square_of(rounded.empty() ? given.row(row) : rounded.data() + row * tensor.in, tensor.in));
  }

  /// [out, in]; what several modules stand in is read once.
  const std::vector<float>& weight_of(const ModuleTensor& tensor) {
    if (tensor.name == last_name_) return last_;
    last_name_ = tensor.name;
    const std::string name = tensor.name + ".weight";
    if (!tensor.transposed) return last_ = read_finite(tensors_, name, {tensor.out, tensor.in});
    const std::vector<float> stored = read_finite(tensors_, name, {tensor.in, tensor.out});
    last_.resize(stored.size());
    for (std::int64_t row = 0; row < tensor.in; ++row) {
      for (std::int64_t column = 0; column < tensor.out; ++column)
        last_[static_cast<std::size_t>(column * tensor.in + row)] =
            stored[static_cast<std::size_t>(row * tensor.out + column)];
    }
    return last_;
  }

  static float square_of(const float* row, std::int64_t count) {
    double sum = 0;
    for (std::int64_t i = 0; i < count; ++i) sum += static_cast<double>(row[i]) * row[i];
    return static_cast<float>(sum);
  }

  /// Adds rows of a tensor that is `width` numbers wide, and of these rows the columns.
  static void append(const std::vector<float>& tensor, std::int64_t width, Share rows, Share columns,
                     std::vector<float>& to) {
    if (to.empty() && std::ssize(tensor) == rows.count() * columns.count()) {
      to = tensor;
      return;
    }
    to.reserve(to.size() + static_cast<std::size_t>(rows.count() * columns.count()));
    for (std::int64_t row = rows.first; row < rows.last; ++row) {
      const auto first = tensor.begin() + row * width;
      to.insert(to.end(), first + columns.first, first + columns.last);
    }
  }

  const SafetensorsFolder& tensors_;
  const WeightNames& names_;
  const Shard& shard_;
  const kernels::Kernels& kernels_;
  kernels::WeightType type_;
  std::int32_t layer_;
  std::array<std::vector<float>, costmodel::kModuleCount> squares_;
  std::string last_name_;
  std::vector<float> last_;
};

/// The shard's rows of a table of tokens.
std::vector<float> rows_of_table(const SafetensorsFolder& tensors, const std::string& name, const Shard& shard) {
  const costmodel::BackboneShape& whole = shard.whole();
  std::vector<float> table = read_finite(tensors, name, {whole.vocabulary, whole.hidden});
  const Share rows = shard.vocabulary();
  table.erase(table.begin() + rows.last * whole.hidden, table.end());
  table.erase(table.begin(), table.begin() + rows.first * whole.hidden);
  return table;
}

/// Rows that come before position 0 are left out.
std::vector<float> positions_of(const SafetensorsFolder& tensors, const std::string& name,
                                const costmodel::BackboneShape& backbone) {
  std::vector<float> table = read_finite(tensors, name, {backbone.position_rows(), backbone.hidden});
  table.erase(table.begin(), table.begin() + (backbone.position_rows() - backbone.max_position) * backbone.hidden);
  return table;
}

}  // namespace

kernels::WeightType weight_type(costmodel::DataType type) {
  switch (type) {
    case costmodel::DataType::f32:
      return kernels::WeightType::f32;
    case costmodel::DataType::bf16:
      return kernels::WeightType::bf16;
    case costmodel::DataType::int8:
      return kernels::WeightType::int8;
    case costmodel::DataType::nf4:
      return kernels::WeightType::nf4;
    case costmodel::DataType::f16:
      break;
  }
  throw error("base weights of {} are not supported; use f32, bf16, int8 or nf4", name(type));
}

void StageWeights::move_to(kernels::Device& device) {
  const auto move = [&](NormWeights& norm) {
    norm.weight.move_to(device);
    norm.bias.move_to(device);
  };
  embedding.move_to(device);
  positions.move_to(device);
  rope_frequencies.move_to(device);
  for (LayerWeights& layer : layers) {
    std::ranges::for_each(layer.norms, move);
    move(layer.query_norm);
    move(layer.key_norm);
  }
  move(final_norm);
}

void join_qkv_squares(LayerWeights& weights) {
  std::vector<float>& all = weights.row_squares[static_cast<std::size_t>(Module::qkv)];
  all.clear();
  for (const Module module : costmodel::modules_of(ModuleGroup::qkv))
    all.insert(all.end(), weights.squares(module).begin(), weights.squares(module).end());
}

StageWeights load_stage_weights(const SafetensorsFolder& tensors, const Shard& shard, const HeldLayers& layers,
                                const kernels::Kernels& kernels, costmodel::DataType type,
                                const std::function<void(LayerWeights& layer)>& take, KeptWeights* kept) {
  const kernels::WeightType held = weight_type(type);
  const costmodel::BackboneShape& backbone = shard.whole();
  const WeightNames names(tensors, backbone);
  StageWeights weights;
  if (backbone.rotary()) weights.rope_frequencies = rope_frequencies(backbone);
  if (layers.first_of_backbone() && kept && kept->layers.first_of_backbone()) {
    weights.embedding = std::move(kept->weights.embedding);
    weights.positions = std::move(kept->weights.positions);
  } else if (layers.first_of_backbone()) {
    std::vector<float> table = rows_of_table(tensors, names.embedding(), shard);
    table.resize(table.size() + static_cast<std::size_t>(backbone.hidden));
    weights.embedding = std::move(table);
    if (!backbone.rotary() && shard.place() == 0)
      weights.positions = positions_of(tensors, names.positions(), backbone);
  }
  for (const std::int32_t layer : layers.numbers()) {
    if (kept && kept->layers.holds(layer)) {
      weights.layers.push_back(std::move(kept->weights.layers[static_cast<std::size_t>(kept->layers.place(layer))]));
      continue;
    }
    weights.layers.push_back(LayerReader(tensors, names, shard, kernels, held, layer).read());
    if (take) take(weights.layers.back());
  }
  const bool ends = layers.last_of_backbone(backbone.layers);
  if (ends && kept && kept->layers.last_of_backbone(backbone.layers)) {
    weights.final_norm = std::move(kept->weights.final_norm);
    weights.head = std::move(kept->weights.head);
  } else if (ends) {
    weights.final_norm = read_norm(tensors, names.final_norm(), backbone.hidden, !backbone.gated());
    const std::vector<float> head = rows_of_table(tensors, names.head(), shard);
    weights.head = kernels.pack_linear(ConstMatrix(head.data(), shard.vocabulary().count(), backbone.hidden), {}, true,
                                       kernels::WeightType::f32);
  }
  return weights;
}

}  // namespace braid::exec
