#pragma once

#include <array>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "costmodel/work/operators.h"
#include "exec/files/safetensors.h"
#include "exec/held_layers.h"
#include "kernels/matrix.h"
#include "planner/program/program.h"

namespace braid::exec {

/// One task's LoRA adapter on the layers of a stage, with its gradient and AdamW moments.
///
/// The numbers of a layer stand together, layer after layer; in a layer, group after group: the A matrices of the
/// group's targets stacked as [modules · r, in], so that modules that read the same input share a product, then each
/// target's B [out, r].
class Adapter {
 public:
  /// A is uniform in ±1/sqrt(in) as PEFT draws it, B is 0. Each number depends on (seed, layer, module, place) alone,
  /// so that it does not matter how layers lie on stages.
  Adapter(const costmodel::BackboneShape& backbone, const costmodel::AdapterShape& shape, HeldLayers layers,
          std::uint64_t seed);

  const costmodel::AdapterShape& shape() const { return shape_; }
  const costmodel::BackboneShape& backbone() const { return backbone_; }
  const HeldLayers& layers() const { return layers_; }
  float scaling(costmodel::Module module) const { return static_cast<float>(shape_.scaling(module)); }

  /// What is kept of each number.
  enum class Part { parameter, gradient };
  /// A of the group's targets, [sum of their r, in]; `layer` counts over the whole backbone.
  kernels::Matrix stacked_a(Part part, std::int32_t layer, costmodel::ModuleGroup group);
  /// A of one target, [r, in], and its B, [out, r].
  kernels::Matrix a(Part part, std::int32_t layer, costmodel::Module module);
  kernels::Matrix b(Part part, std::int32_t layer, costmodel::Module module);

  /// How many numbers a layer has.
  std::int64_t layer_numbers() const { return layer_numbers_; }
  /// Layers [first, last), a run that is here.
  std::span<float> gradients(planner::LayerRange layers);
  std::span<float> parameters() { return parameters_; }
  std::span<float> gradients() { return gradients_; }
  std::span<float> first_moments() { return first_moments_; }
  std::span<float> second_moments() { return second_moments_; }

 private:
  struct Place {
    std::int64_t a = -1;  // from the layer's first number; -1: not a target
    std::int64_t b = -1;
  };

  kernels::Matrix view(Part part, std::int32_t layer, std::int64_t offset, std::int64_t rows, std::int64_t columns);

  costmodel::BackboneShape backbone_;
  costmodel::AdapterShape shape_;
  HeldLayers layers_;
  std::int64_t layer_numbers_ = 0;
  std::array<Place, costmodel::kModuleCount> places_{};
  std::vector<float> parameters_, gradients_, first_moments_, second_moments_;
};

/// The name that PEFT gives a target's matrix.
std::string peft_name(costmodel::Architecture architecture, std::int32_t layer, costmodel::Module module, char matrix);

/// Loads what PEFT wrote into `folder`, whose configuration is the adapter's. Throws Error when shapes are not the
/// adapter's, for a tensor that is no part of it, and for a number that is not finite.
void load_peft_adapter(const std::filesystem::path& folder, Adapter& adapter);

/// A whole adapter's tensors by PEFT's names, as gathered from all stages.
struct AdapterTensor {
  std::string name;
  std::vector<std::int64_t> shape;
  std::vector<float> data;
};
/// The tensors of a stage's layers, in layer order.
std::vector<AdapterTensor> adapter_tensors(Adapter& adapter);

/// Writes adapter_model.safetensors and adapter_config.json as PEFT does for a backbone of that family. `backbone` is
/// what `base_model_name_or_path` says.
void write_peft_adapter(const std::filesystem::path& folder, const costmodel::AdapterShape& shape,
                        costmodel::Architecture architecture, const std::string& backbone,
                        std::span<const AdapterTensor> tensors);

}  // namespace braid::exec
