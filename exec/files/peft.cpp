#include "exec/files/peft.h"

#include <algorithm>
#include <cmath>
#include <set>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/node.h"
#include "costmodel/shapes/family.h"

namespace braid::exec {

using costmodel::AdapterMethod;
using costmodel::Module;
using Json = nlohmann::ordered_json;

namespace {

constexpr std::string_view kPeft = "base_model.model.";
constexpr std::string_view kVeraA = "base_model.vera_A", kVeraB = "base_model.vera_B";
/// What we call a bottleneck adapter in its file.
constexpr std::string_view kHubName = "adapter";
constexpr std::string_view kPrompt = "prompt_embeddings";

/// What PEFT and AdapterHub call a role, after the module.
std::string_view suffix(Role role) {
  switch (role) {
    case Role::a:
      return "lora_A.weight";
    case Role::b:
      return "lora_B.weight";
    case Role::magnitude:
      return "lora_magnitude_vector";
    case Role::lambda_d:
      return "vera_lambda_d";
    case Role::lambda_b:
      return "vera_lambda_b";
    case Role::scale:
      return "ia3_l";
    case Role::difference:
      return "shira_weight";
    case Role::down:
      return "adapter_down.0.weight";
    case Role::down_bias:
      return "adapter_down.0.bias";
    case Role::up:
      return "adapter_up.weight";
    case Role::up_bias:
      return "adapter_up.bias";
    case Role::prefix:
      break;
  }
  return "";
}

/// As the file has it: vectors without a second extent, IA³'s with one.
std::vector<std::int64_t> stored_shape(const Adapter& adapter, const ParameterShape& parameter) {
  if (parameter.role == Role::scale && !adapter.shape().scales_input(parameter.module)) return {parameter.columns, 1};
  const bool matrix = parameter.rows > 1 || parameter.role == Role::scale || parameter.role == Role::a ||
                      parameter.role == Role::b || parameter.role == Role::down || parameter.role == Role::up;
  if (matrix) return {parameter.rows, parameter.columns};
  return {parameter.columns};
}

std::string indices_name(const Adapter& adapter, std::int32_t layer, Module module) {
  return fmt::format("{}{}{}.shira_indices", kPeft, costmodel::layer_prefix(adapter.backbone().architecture, layer),
                     costmodel::family_names(adapter.backbone().architecture).name(module));
}

/// Of AdapterHub's files weights have another name than of PEFT's.
std::filesystem::path weights_file(const std::filesystem::path& folder, AdapterMethod method) {
  return folder / (method == AdapterMethod::bottleneck ? "adapter.safetensors" : "adapter_model.safetensors");
}

/// One adapter's file to read from.
class AdapterFile {
 public:
  AdapterFile(const std::filesystem::path& folder, Adapter& adapter)
      : file_(weights_file(folder, adapter.shape().method)),
        tensors_(SafetensorsFolder::open_file(file_)),
        adapter_(adapter) {
    // AdapterHub's tensors bear the adapter's name.
    if (adapter.shape().method == AdapterMethod::bottleneck)
      hub_name_ = read_json(folder / "adapter_config.json").string_or("name", std::string(kHubName));
  }

  void read() {
    check_all_taken();
    for (const std::int32_t layer : adapter_.layers().numbers()) {
      for (const ParameterShape& parameter : adapter_.table()) {
        if (parameter.role == Role::prefix) continue;
        const kernels::Matrix matrix =
            adapter_.matrix(Adapter::Part::parameter, layer, parameter.role, parameter.module);
        const std::vector<float> numbers =
            finite(tensor_name(adapter_, layer, parameter, hub_name_), stored_shape(adapter_, parameter));
        std::copy(numbers.begin(), numbers.end(), matrix.data);
        if (parameter.role == Role::difference) read_places(layer, parameter);
      }
    }
    if (adapter_.shape().method == AdapterMethod::prefix_tuning) read_prefixes();
    if (adapter_.shape().method == AdapterMethod::vera) {
      const kernels::ConstMatrix a = adapter_.random_a(), b = adapter_.random_b();
      adapter_.random_a_numbers() = finite(std::string(kVeraA), {a.rows, a.columns});
      adapter_.random_b_numbers() = finite(std::string(kVeraB), {b.rows, b.columns});
    }
    adapter_.changed();
  }

 private:
  /// A tensor's numbers, all of which must be finite.
  std::vector<float> finite(const std::string& name, const std::vector<std::int64_t>& shape) const {
    std::vector<float> numbers = tensors_.read_f32(name, shape);
    const auto broken =
        std::find_if(numbers.begin(), numbers.end(), [](float number) { return !std::isfinite(number); });
    if (broken != numbers.end())
      throw error("{}: tensor '{}' holds {}, which no training can begin with; give an adapter of finite numbers",
                  file_.string(), name, *broken);
    return numbers;
  }

  /// Refuses what stands in the file and is no matrix of the adapter, in this stage's layers or another's.
  void check_all_taken() const {
    std::set<std::string, std::less<>> known;
    for (std::int32_t layer = 0; layer < adapter_.backbone().layers; ++layer) {
      for (const ParameterShape& parameter : adapter_.table()) {
        known.insert(tensor_name(adapter_, layer, parameter, hub_name_));
        if (parameter.role == Role::difference) known.insert(indices_name(adapter_, layer, parameter.module));
      }
    }
    if (adapter_.shape().method == AdapterMethod::vera) known.insert({std::string(kVeraA), std::string(kVeraB)});
    for (const std::string& name : tensors_.names()) {
      if (!known.contains(name))
        throw error(
            "{}: tensor '{}' is no part of the {} adapter that the task describes; train without it, or remove it from "
            "the file",
            file_.string(), name, costmodel::name(adapter_.shape().method));
    }
  }

  /// [virtual tokens, layers, keys and values]: every stage takes its layers'.
  void read_prefixes() {
    const ParameterShape& parameter = adapter_.table().front();
    const std::int64_t layers = adapter_.backbone().layers;
    const std::vector<float> all = finite(std::string(kPrompt), {parameter.rows, layers * parameter.columns});
    for (const std::int32_t layer : adapter_.layers().numbers()) {
      const kernels::Matrix prefix = adapter_.matrix(Adapter::Part::parameter, layer, Role::prefix, Module::q);
      for (std::int64_t token = 0; token < prefix.rows; ++token)
        std::copy_n(all.begin() + (token * layers + layer) * prefix.columns, prefix.columns, prefix.row(token));
    }
  }

  /// Rows first, then columns, in any order; the adapter's are sorted, and its numbers with them.
  void read_places(std::int32_t layer, const ParameterShape& parameter) {
    const std::string name = indices_name(adapter_, layer, parameter.module);
    const std::vector<std::int32_t> stored = tensors_.read_i32(name, {2, parameter.columns});
    const auto count = static_cast<std::size_t>(parameter.columns);
    const costmodel::ModuleShape weight = costmodel::module_shape(adapter_.backbone(), parameter.module);
    const kernels::Vector numbers = adapter_.row(Adapter::Part::parameter, layer, Role::difference, parameter.module);
    std::vector<std::tuple<std::int32_t, std::int32_t, float>> entries;
    for (std::size_t k = 0; k < count; ++k) {
      const std::int32_t row = stored[k], column = stored[count + k];
      if (row < 0 || row >= weight.out || column < 0 || column >= weight.in)
        throw error("{}: tensor '{}' names [{}, {}] of a weight [{}, {}]; give the adapter of this backbone",
                    file_.string(), name, row, column, weight.out, weight.in);
      entries.emplace_back(row, column, numbers[k]);
    }
    std::sort(entries.begin(), entries.end());
    std::vector<std::int32_t> rows, columns;
    for (std::size_t k = 0; k < count; ++k) {
      const auto& [row, column, number] = entries[k];
      rows.push_back(row), columns.push_back(column), numbers[k] = number;
    }
    adapter_.places(layer, parameter.module) = {std::move(rows), std::move(columns)};
  }

  std::filesystem::path file_;
  SafetensorsFolder tensors_;
  Adapter& adapter_;
  std::string hub_name_{kHubName};
};

AdapterTensor prefix_tensor(Adapter& adapter) {
  const ParameterShape& parameter = adapter.table().front();
  const std::int64_t layers = adapter.backbone().layers;
  AdapterTensor tensor{std::string(kPrompt), {parameter.rows, layers * parameter.columns}, {}};
  for (std::int64_t token = 0; token < parameter.rows; ++token) {
    for (const std::int32_t layer : adapter.layers().numbers()) {
      const float* row = adapter.matrix(Adapter::Part::parameter, layer, Role::prefix, Module::q).row(token);
      tensor.data.insert(tensor.data.end(), row, row + parameter.columns);
    }
  }
  return tensor;
}

AdapterTensor copy_of(std::string_view name, kernels::ConstMatrix matrix) {
  return {std::string(name), {matrix.rows, matrix.columns}, {matrix.data, matrix.data + matrix.rows * matrix.columns}};
}

/// PEFT's configurations, key by key as it writes them.
class PeftConfig {
 public:
  PeftConfig(const costmodel::AdapterShape& shape, const costmodel::BackboneShape& backbone, const std::string& name)
      : shape_(shape), backbone_(backbone), name_(name) {}

  Json json() const {
    switch (shape_.method) {
      case AdapterMethod::lora:
      case AdapterMethod::dora:
        return lora();
      case AdapterMethod::vera:
        return common("VERA", {{"d_initial", 0.1},
                               {"fan_in_fan_out", transposed()},
                               {"projection_prng_key", 0},
                               {"r", shape_.rank},
                               {"save_projection", true},
                               {"target_modules", modules()},
                               {"vera_dropout", shape_.dropout}});
      case AdapterMethod::ia3: {
        Json feedforward = Json::array();
        if (shape_.has(Module::down) && shape_.scales_input(Module::down)) feedforward.push_back(target(Module::down));
        return common("IA3", {{"fan_in_fan_out", transposed()},
                              {"feedforward_modules", feedforward},
                              {"init_ia3_weights", true},
                              {"target_modules", modules()}});
      }
      case AdapterMethod::prefix_tuning:
        return common("PREFIX_TUNING", {{"encoder_hidden_size", nullptr},
                                        {"num_attention_heads", backbone_.kv_heads},
                                        {"num_layers", backbone_.layers},
                                        {"num_transformer_submodules", 1},
                                        {"num_virtual_tokens", shape_.rank},
                                        {"prefix_projection", false},
                                        {"token_dim", backbone_.kv_width()}});
      case AdapterMethod::diff_pruning:
        return common("SHIRA", {{"fan_in_fan_out", transposed()},
                                {"init_weights", true},
                                {"mask_type", "random"},
                                {"r", shape_.rank},
                                {"random_seed", nullptr},
                                {"target_modules", modules()}});
      case AdapterMethod::bottleneck:
        break;
    }
    return adapter_hub();
  }

 private:
  bool transposed() const { return costmodel::family_names(backbone_.architecture).transposed; }
  std::string_view target(Module module) const { return costmodel::target_name(backbone_.architecture, module); }
  Json modules() const {
    Json all = Json::array();
    for (const Module module : costmodel::kModules) {
      if (shape_.has(module)) all.push_back(target(module));
    }
    return all;
  }
  Json common(const char* type, Json own) const {
    own["base_model_name_or_path"] = name_;
    own["inference_mode"] = true;
    own["peft_type"] = type;
    own["task_type"] = "CAUSAL_LM";
    return own;
  }

  Json lora() const {
    Json ranks = Json::object(), alphas = ranks;
    for (const Module module : costmodel::kModules) {
      if (shape_.has(module) && shape_.rank_of(module) != shape_.rank) ranks[target(module)] = shape_.rank_of(module);
      if (shape_.has(module) && shape_.alpha_of(module) != shape_.alpha)
        alphas[target(module)] = shape_.alpha_of(module);
    }
    return {{"alpha_pattern", alphas},
            {"base_model_name_or_path", name_},
            {"bias", "none"},
            {"fan_in_fan_out", transposed()},
            {"inference_mode", true},
            {"init_lora_weights", true},
            {"lora_alpha", shape_.alpha},
            {"lora_dropout", shape_.dropout},
            {"modules_to_save", nullptr},
            {"peft_type", "LORA"},
            {"r", shape_.rank},
            {"rank_pattern", ranks},
            {"target_modules", modules()},
            {"task_type", "CAUSAL_LM"},
            {"use_dora", shape_.method == AdapterMethod::dora},
            {"use_rslora", shape_.rank_stabilized}};
  }

  /// AdapterHub's DoubleSeqBnConfig.
  Json adapter_hub() const {
    const Json config = {{"adapter_residual_before_ln", false},
                         {"cross_adapter", false},
                         {"init_weights", "bert"},
                         {"is_parallel", false},
                         {"ln_after", false},
                         {"ln_before", false},
                         {"mh_adapter", shape_.has(Module::o)},
                         {"non_linearity", "swish"},
                         {"original_ln_after", true},
                         {"original_ln_before", false},
                         {"output_adapter", shape_.has(Module::down)},
                         {"reduction_factor", static_cast<double>(backbone_.hidden) / static_cast<double>(shape_.rank)},
                         {"residual_before_ln", true},
                         {"scaling", 1.0}};
    return {{"config", config},
            {"hidden_size", backbone_.hidden},
            {"model_name", name_},
            {"name", kHubName},
            {"version", "adapters.1.2.0"}};
  }

  const costmodel::AdapterShape& shape_;
  const costmodel::BackboneShape& backbone_;
  const std::string& name_;
};

}  // namespace

std::string peft_name(costmodel::Architecture architecture, std::int32_t layer, Module module, char matrix) {
  return fmt::format("{}{}{}.lora_{}.weight", kPeft, costmodel::layer_prefix(architecture, layer),
                     costmodel::family_names(architecture).name(module), matrix);
}

std::string tensor_name(const Adapter& adapter, std::int32_t layer, const ParameterShape& parameter,
                        std::string_view hub_name) {
  const costmodel::Architecture architecture = adapter.backbone().architecture;
  if (parameter.role == Role::prefix) return std::string(kPrompt);
  const std::string prefix = costmodel::layer_prefix(architecture, layer);
  if (adapter.shape().method == AdapterMethod::bottleneck)
    return fmt::format("{}{}.adapters.{}.{}", prefix,
                       parameter.module == Module::o ? "attention_adapters" : "output_adapters", hub_name,
                       suffix(parameter.role));
  return fmt::format("{}{}{}.{}", kPeft, prefix, costmodel::family_names(architecture).name(parameter.module),
                     suffix(parameter.role));
}

void load_peft_adapter(const std::filesystem::path& folder, Adapter& adapter) {
  AdapterFile(folder, adapter).read();
}

std::vector<AdapterTensor> adapter_tensors(Adapter& adapter) {
  if (adapter.shape().method == AdapterMethod::prefix_tuning) return {prefix_tensor(adapter)};
  std::vector<AdapterTensor> tensors;
  for (const std::int32_t layer : adapter.layers().numbers()) {
    for (const ParameterShape& parameter : adapter.table()) {
      const kernels::Vector numbers = adapter.row(Adapter::Part::parameter, layer, parameter.role, parameter.module);
      tensors.push_back(
          {tensor_name(adapter, layer, parameter), stored_shape(adapter, parameter), {numbers.begin(), numbers.end()}});
      if (parameter.role != Role::difference) continue;
      const Places& places = adapter.places(layer, parameter.module);
      AdapterTensor indices{
          indices_name(adapter, layer, parameter.module), {2, parameter.columns}, {}, places.rows.on_host()};
      const std::vector<std::int32_t> columns = places.columns.on_host();
      indices.integers.insert(indices.integers.end(), columns.begin(), columns.end());
      tensors.push_back(std::move(indices));
    }
  }
  if (adapter.shape().method == AdapterMethod::vera) {
    tensors.push_back(copy_of(kVeraA, adapter.random_a()));
    tensors.push_back(copy_of(kVeraB, adapter.random_b()));
  }
  return tensors;
}

void write_peft_adapter(const std::filesystem::path& folder, const costmodel::AdapterShape& shape,
                        const costmodel::BackboneShape& backbone, const std::string& name,
                        std::span<const AdapterTensor> tensors) {
  std::vector<NamedTensor> named;
  for (const AdapterTensor& tensor : tensors)
    named.push_back({tensor.name, tensor.shape, tensor.data, tensor.integers});
  write_safetensors(weights_file(folder, shape.method), named);
  write_file(folder / "adapter_config.json", PeftConfig(shape, backbone, name).json().dump(2) + "\n");
}

}  // namespace braid::exec
