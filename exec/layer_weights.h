#pragma once

#include <vector>

#include "costmodel/adapter.h"
#include "costmodel/backbone.h"
#include "exec/safetensors.h"
#include "kernels/linear.h"
#include "planner/program/program.h"

namespace braid::exec {

/// The frozen weights of one decoder layer, q k v in one product and gate up in one.
struct LayerWeights {
  std::vector<float> input_norm;       ///< [H]
  std::vector<float> attention_norm;   ///< [H], before gate and up
  kernels::cpu::PackedLinear qkv;      ///< [(Hq + 2 Hkv) · D, H]
  kernels::cpu::PackedLinear o;        ///< [H, Hq · D]
  kernels::cpu::PackedLinear gate_up;  ///< [2F, H]
  kernels::cpu::PackedLinear down;     ///< [H, F]
};

/// What a stage holds of a backbone.
struct StageWeights {
  std::vector<float> embedding;  ///< [V, H] on the first stage, else empty
  std::vector<LayerWeights> layers;
  std::vector<float> final_norm;                 ///< [H] on the last stage
  std::vector<kernels::cpu::PackedLinear> head;  ///< one, [V, H], on the last stage
  std::vector<float> rope_frequencies;           ///< [D/2]
};

/// Reads a stage's part of a Hugging Face folder. Throws Error when a tensor is missing or has another shape.
StageWeights load_stage_weights(const SafetensorsFolder& tensors, const costmodel::BackboneShape& backbone,
                                planner::LayerRange layers);

/// Rotary frequencies theta^(−2i/D), stretched as Llama 3.1's rule says where the backbone has it.
std::vector<float> rope_frequencies(const costmodel::BackboneShape& backbone);

}  // namespace braid::exec
