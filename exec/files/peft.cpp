#include <algorithm>
#include <cmath>
#include <set>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "costmodel/shapes/family.h"
#include "exec/adapters/adapter.h"

namespace braid::exec {

using costmodel::Module;

namespace {

/// Numbers of that tensor, all of which must be finite.
void read_into(const SafetensorsFolder& tensors, const std::filesystem::path& file, const std::string& name,
               kernels::Matrix matrix) {
  const std::vector<float> numbers = tensors.read_f32(name, {matrix.rows, matrix.columns});
  const auto broken = std::find_if(numbers.begin(), numbers.end(), [](float number) { return !std::isfinite(number); });
  if (broken != numbers.end())
    throw error("{}: tensor '{}' holds {}, which no training can begin with; give an adapter of finite numbers",
                file.string(), name, *broken);
  std::copy(numbers.begin(), numbers.end(), matrix.data);
}

/// Refuses what stands in the file and is no matrix of the adapter, in this stage's layers or another's.
void check_all_taken(const SafetensorsFolder& tensors, const std::filesystem::path& file, const Adapter& adapter) {
  std::set<std::string> known;
  for (std::int32_t layer = 0; layer < adapter.backbone().layers; ++layer) {
    for (const Module module : costmodel::kModules) {
      if (!adapter.shape().has(module)) continue;
      for (const char matrix : {'A', 'B'})
        known.insert(peft_name(adapter.backbone().architecture, layer, module, matrix));
    }
  }
  for (const std::string& name : tensors.names()) {
    if (!known.contains(name))
      throw error(
          "{}: tensor '{}' is no part of the LoRA adapter that the task describes; train without it, or remove it from "
          "the file",
          file.string(), name);
  }
}

}  // namespace

std::string peft_name(costmodel::Architecture architecture, std::int32_t layer, Module module, char matrix) {
  return fmt::format("base_model.model.{}{}.lora_{}.weight", costmodel::layer_prefix(architecture, layer),
                     costmodel::family_names(architecture).name(module), matrix);
}

void load_peft_adapter(const std::filesystem::path& folder, Adapter& adapter) {
  const std::filesystem::path file = folder / "adapter_model.safetensors";
  const SafetensorsFolder tensors = SafetensorsFolder::open_file(file);
  check_all_taken(tensors, file, adapter);
  const auto name = [&](std::int32_t layer, Module module, char matrix) {
    return peft_name(adapter.backbone().architecture, layer, module, matrix);
  };
  for (const std::int32_t layer : adapter.layers().numbers()) {
    for (const Module module : costmodel::kModules) {
      if (!adapter.shape().has(module)) continue;
      read_into(tensors, file, name(layer, module, 'A'), adapter.a(Adapter::Part::parameter, layer, module));
      read_into(tensors, file, name(layer, module, 'B'), adapter.b(Adapter::Part::parameter, layer, module));
    }
  }
}

std::vector<AdapterTensor> adapter_tensors(Adapter& adapter) {
  std::vector<AdapterTensor> tensors;
  const auto add = [&](std::string name, kernels::Matrix matrix) {
    tensors.push_back(
        {std::move(name), {matrix.rows, matrix.columns}, {matrix.data, matrix.data + matrix.rows * matrix.columns}});
  };
  for (const std::int32_t layer : adapter.layers().numbers()) {
    for (const Module module : costmodel::kModules) {
      if (!adapter.shape().has(module)) continue;
      const costmodel::Architecture family = adapter.backbone().architecture;
      add(peft_name(family, layer, module, 'A'), adapter.a(Adapter::Part::parameter, layer, module));
      add(peft_name(family, layer, module, 'B'), adapter.b(Adapter::Part::parameter, layer, module));
    }
  }
  return tensors;
}

void write_peft_adapter(const std::filesystem::path& folder, const costmodel::AdapterShape& shape,
                        costmodel::Architecture architecture, const std::string& backbone,
                        std::span<const AdapterTensor> tensors) {
  const auto target_name = [&](Module module) { return costmodel::target_name(architecture, module); };
  std::vector<NamedTensor> named;
  for (const AdapterTensor& tensor : tensors) named.push_back({tensor.name, tensor.shape, tensor.data});
  write_safetensors(folder / "adapter_model.safetensors", named);
  nlohmann::ordered_json modules = nlohmann::ordered_json::array();
  for (const Module module : costmodel::kModules) {
    if (shape.has(module)) modules.push_back(target_name(module));
  }
  nlohmann::ordered_json ranks = nlohmann::ordered_json::object(), alphas = ranks;
  for (const Module module : costmodel::kModules) {
    if (shape.has(module) && shape.rank_of(module) != shape.rank) ranks[target_name(module)] = shape.rank_of(module);
    if (shape.has(module) && shape.alpha_of(module) != shape.alpha)
      alphas[target_name(module)] = shape.alpha_of(module);
  }
  const nlohmann::ordered_json config = {{"alpha_pattern", alphas},
                                         {"base_model_name_or_path", backbone},
                                         {"bias", "none"},
                                         {"fan_in_fan_out", costmodel::family_names(architecture).transposed},
                                         {"inference_mode", true},
                                         {"init_lora_weights", true},
                                         {"lora_alpha", shape.alpha},
                                         {"lora_dropout", shape.dropout},
                                         {"modules_to_save", nullptr},
                                         {"peft_type", "LORA"},
                                         {"r", shape.rank},
                                         {"rank_pattern", ranks},
                                         {"target_modules", modules},
                                         {"task_type", "CAUSAL_LM"},
                                         {"use_dora", false},
                                         {"use_rslora", shape.rank_stabilized}};
  write_file(folder / "adapter_config.json", config.dump(2) + "\n");
}

}  // namespace braid::exec
