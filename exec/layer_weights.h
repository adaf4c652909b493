#pragma once

#include <memory>
#include <vector>

#include "costmodel/shapes/adapter.h"
#include "costmodel/shapes/backbone.h"
#include "exec/files/safetensors.h"
#include "kernels/kernels.h"
#include "planner/program/program.h"

namespace braid::exec {

/// The frozen weights of one decoder layer, q k v in one product and gate up in one.
struct LayerWeights {
  std::vector<float> input_norm;                   ///< [H]
  std::vector<float> attention_norm;               ///< [H], before gate and up
  std::unique_ptr<kernels::FrozenLinear> qkv;      ///< [(Hq + 2 Hkv) · D, H]
  std::unique_ptr<kernels::FrozenLinear> o;        ///< [H, Hq · D]
  std::unique_ptr<kernels::FrozenLinear> gate_up;  ///< [2F, H]
  std::unique_ptr<kernels::FrozenLinear> down;     ///< [H, F]
  std::vector<float> q_norm;                       ///< [D], of each query head; empty where the backbone has none
  std::vector<float> k_norm;                       ///< [D], of each key head
};

/// What a stage holds of a backbone.
struct StageWeights {
  std::vector<float> embedding;  ///< [V, H] on the first stage, else empty
  std::vector<LayerWeights> layers;
  std::vector<float> final_norm;                ///< [H] on the last stage
  std::unique_ptr<kernels::FrozenLinear> head;  ///< [V, H] on the last stage
  std::vector<float> rope_frequencies;          ///< [D/2]
};

/// Reads a stage's part of a Hugging Face folder and packs it with `kernels`. Throws Error when a tensor is missing,
/// has another shape or is taken up by nothing.
StageWeights load_stage_weights(const SafetensorsFolder& tensors, const costmodel::BackboneShape& backbone,
                                planner::LayerRange layers, const kernels::Kernels& kernels);

}  // namespace braid::exec
