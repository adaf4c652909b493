#pragma once

#include <array>
#include <functional>
#include <memory>
#include <vector>

#include "costmodel/shapes/data_type.h"
#include "costmodel/shapes/layer_ops.h"
#include "exec/device_array.h"
#include "exec/embedding_table.h"
#include "exec/files/safetensors.h"
#include "exec/held_layers.h"
#include "exec/shard.h"
#include "kernels/kernels.h"
#include "planner/program/program.h"

namespace braid::exec {

/// A norm's, each [H] or [D]; RMS norms have no bias.
struct NormWeights {
  DeviceArray<float> weight, bias;
};

/// The frozen weights of one decoder layer, or of a rank's shard of it.
struct LayerWeights {
  std::array<NormWeights, costmodel::kSlotCount> norms;  ///< by the slot that a norm writes; others are empty
  /// By group: q k v in one product [(Hq + 2 Hkv) · D, H], o [H, Hq · D], gate and up in one [2F, H], down [H, F].
  std::array<std::unique_ptr<kernels::FrozenLinear>, costmodel::kModuleGroups.size()> products;
  NormWeights query_norm, key_norm;  ///< of each head; empty where the backbone has none

  /// By module, Σ w² of each row of its weight, of the whole of it: what DoRA's norms are made of.
  std::array<std::vector<float>, costmodel::kModuleCount> row_squares;

  const std::vector<float>& squares(costmodel::Module module) const {
    return row_squares[static_cast<std::size_t>(module)];
  }
  const NormWeights& norm(costmodel::Slot to) const { return norms[static_cast<std::size_t>(to)]; }
  const kernels::FrozenLinear& product(costmodel::ModuleGroup group) const {
    return *products[static_cast<std::size_t>(group)];
  }
};

/// What a rank holds of a backbone.
struct StageWeights {
  EmbeddingTable embedding;  ///< [V + 1, H] on the first stage, the last row of zeros; else empty
  /// [max_position, H] of learned positions on the first stage, where one shard adds them; else empty.
  EmbeddingTable positions;
  std::vector<LayerWeights> layers;
  NormWeights final_norm;                       ///< on the last stage
  std::unique_ptr<kernels::FrozenLinear> head;  ///< [V, H] on the last stage
  DeviceArray<float> rope_frequencies;          ///< [D/2]

  /// What is not there; products are where they were packed for.
  void move_to(kernels::Device& device);
};

/// What a rank held of those layers, on the same device.
struct KeptWeights {
  HeldLayers layers;
  StageWeights weights;
};

/// Fills in what `row_squares` has of q, k and v in one.
void join_qkv_squares(LayerWeights& weights);

/// Reads a rank's part of a Hugging Face folder, the shard's rows and columns of `layers`, and packs it with
/// `kernels`, the products of layers as `type` says.
/// Throws Error when a tensor is missing, has another shape, holds a number that is not finite or is taken up by
/// nothing.
/// `take` may take what it wants of each layer as soon as it is read. What is among `kept`, of the same shard, is moved
/// out of it, not read.
StageWeights load_stage_weights(const SafetensorsFolder& tensors, const Shard& shard, const HeldLayers& layers,
                                const kernels::Kernels& kernels, costmodel::DataType type = costmodel::DataType::f32,
                                const std::function<void(LayerWeights& layer)>& take = {}, KeptWeights* kept = nullptr);

/// How a device holds products of that type. Throws Error for a type that none does.
kernels::WeightType weight_type(costmodel::DataType type);

}  // namespace braid::exec
