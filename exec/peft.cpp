#include <algorithm>
#include <set>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/node.h"
#include "exec/adapter.h"

namespace braid::exec {

using costmodel::Module;

namespace {

bool in_attention(Module module) {
  return module == Module::q || module == Module::k || module == Module::v || module == Module::o;
}

void check_config(const std::filesystem::path& file, const costmodel::AdapterShape& shape) {
  const Node config = read_json(file);
  if (const std::string type = config.string_or("peft_type", ""); type != "LORA")
    throw config.error(fmt::format("peft_type is '{}'", type), "give a LORA adapter");
  if (config.bool_or("use_dora", false))
    throw config.at("use_dora").error("DoRA adapters are not supported", "give a plain LoRA adapter");
  if (const Node* pattern = config.find("rank_pattern"); pattern && !pattern->fields.empty())
    throw pattern->error("rank_pattern is not supported", "give an adapter with one rank");
  if (const std::int64_t rank = config.integer_at("r", 1); rank != shape.rank) {
    throw config.at("r").error(fmt::format("the adapter has rank {}, the task {}", rank, shape.rank),
                               "make them the same");
  }
  if (const double alpha = config.number_at("lora_alpha"); alpha != shape.alpha) {
    throw config.at("lora_alpha")
        .error(fmt::format("the adapter has alpha {}, the task {}", alpha, shape.alpha), "make them the same");
  }
  if (const bool stabilized = config.bool_or("use_rslora", false); stabilized != shape.rank_stabilized) {
    throw config.error(
        fmt::format("the adapter has use_rslora {}, the task rslora {}", stabilized, shape.rank_stabilized),
        "make them the same");
  }
  std::set<std::string> theirs;
  for (const Node& module : config.at("target_modules").sequence("target_modules"))
    theirs.insert(module.as_string("target_modules"));
  std::set<std::string> ours;
  for (const Module module : costmodel::kModules) {
    if (shape.has(module)) ours.insert(std::string(costmodel::module_name(module)));
  }
  if (theirs != ours) {
    throw config.at("target_modules")
        .error(fmt::format("the adapter's modules are {}, the task's {}", fmt::join(theirs, " "), fmt::join(ours, " ")),
               "make them the same");
  }
}

void copy_into(kernels::Matrix matrix, std::span<const float> source) {
  std::copy(source.begin(), source.end(), matrix.data);
}

}  // namespace

std::string peft_name(std::int32_t layer, Module module, char matrix) {
  return fmt::format("base_model.model.model.layers.{}.{}.{}.lora_{}.weight", layer,
                     in_attention(module) ? "self_attn" : "mlp", costmodel::module_name(module), matrix);
}

void load_peft_adapter(const std::filesystem::path& folder, Adapter& adapter) {
  check_config(folder / "adapter_config.json", adapter.shape());
  const SafetensorsFolder tensors = SafetensorsFolder::open_file(folder / "adapter_model.safetensors");
  for (std::int32_t layer = adapter.layers().first; layer < adapter.layers().last; ++layer) {
    for (const Module module : costmodel::kModules) {
      if (!adapter.shape().has(module)) continue;
      const kernels::Matrix a = adapter.a(Adapter::Part::parameter, layer, module);
      const kernels::Matrix b = adapter.b(Adapter::Part::parameter, layer, module);
      copy_into(a, tensors.read_f32(peft_name(layer, module, 'A'), {a.rows, a.columns}));
      copy_into(b, tensors.read_f32(peft_name(layer, module, 'B'), {b.rows, b.columns}));
    }
  }
}

std::vector<AdapterTensor> adapter_tensors(Adapter& adapter) {
  std::vector<AdapterTensor> tensors;
  const auto add = [&](std::string name, kernels::Matrix matrix) {
    tensors.push_back(
        {std::move(name), {matrix.rows, matrix.columns}, {matrix.data, matrix.data + matrix.rows * matrix.columns}});
  };
  for (std::int32_t layer = adapter.layers().first; layer < adapter.layers().last; ++layer) {
    for (const Module module : costmodel::kModules) {
      if (!adapter.shape().has(module)) continue;
      add(peft_name(layer, module, 'A'), adapter.a(Adapter::Part::parameter, layer, module));
      add(peft_name(layer, module, 'B'), adapter.b(Adapter::Part::parameter, layer, module));
    }
  }
  return tensors;
}

void write_peft_adapter(const std::filesystem::path& folder, const costmodel::AdapterShape& shape,
                        const std::string& backbone, std::span<const AdapterTensor> tensors) {
  std::vector<NamedTensor> named;
  for (const AdapterTensor& tensor : tensors) named.push_back({tensor.name, tensor.shape, tensor.data});
  write_safetensors(folder / "adapter_model.safetensors", named);
  nlohmann::ordered_json modules = nlohmann::ordered_json::array();
  for (const Module module : costmodel::kModules) {
    if (shape.has(module)) modules.push_back(costmodel::module_name(module));
  }
  const nlohmann::ordered_json config = {{"base_model_name_or_path", backbone},
                                         {"bias", "none"},
                                         {"fan_in_fan_out", false},
                                         {"inference_mode", true},
                                         {"init_lora_weights", true},
                                         {"lora_alpha", shape.alpha},
                                         {"lora_dropout", shape.dropout},
                                         {"modules_to_save", nullptr},
                                         {"peft_type", "LORA"},
                                         {"r", shape.rank},
                                         {"target_modules", modules},
                                         {"task_type", "CAUSAL_LM"},
                                         {"use_dora", false},
                                         {"use_rslora", shape.rank_stabilized}};
  write_file(folder / "adapter_config.json", config.dump(2) + "\n");
}

}  // namespace braid::exec
