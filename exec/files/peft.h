#pragma once

#include "exec/adapters/adapter.h"

/// Adapters in files: as Hugging Face PEFT writes them, and bottleneck adapters as AdapterHub does.
namespace braid::exec {

/// The name that PEFT gives a target's matrix: a LoRA adapter's A or B.
std::string peft_name(costmodel::Architecture architecture, std::int32_t layer, costmodel::Module module, char matrix);

/// The name of a trained matrix in the file; of prefixes that of the one tensor which all layers share. AdapterHub's
/// names of bottleneck adapters hold the adapter's own.
std::string tensor_name(const Adapter& adapter, std::int32_t layer, const ParameterShape& parameter,
                        std::string_view hub_name = "adapter");

/// Loads what PEFT wrote into `folder`, whose configuration is the adapter's. Throws Error when shapes are not the
/// adapter's, for a tensor that is no part of it, and for a number that is not finite.
void load_peft_adapter(const std::filesystem::path& folder, Adapter& adapter);

/// A whole adapter's tensors by their names in the file.
struct AdapterTensor {
  std::string name;
  std::vector<std::int64_t> shape;
  std::vector<float> data;
  std::vector<std::int32_t> integers = {};  ///< in place of data
};
/// The tensors of the adapter's layers, in layer order.
std::vector<AdapterTensor> adapter_tensors(Adapter& adapter);

/// Writes adapter_model.safetensors and adapter_config.json as PEFT does for a backbone. `name` is what
/// `base_model_name_or_path` says.
void write_peft_adapter(const std::filesystem::path& folder, const costmodel::AdapterShape& shape,
                        const costmodel::BackboneShape& backbone, const std::string& name,
                        std::span<const AdapterTensor> tensors);

}  // namespace braid::exec
