#include "exec/weight_names.h"

#include <set>
#include <vector>

#include "base/error.h"
#include "base/notice.h"
#include "costmodel/shapes/adapter.h"

namespace braid::exec {
namespace {

constexpr std::string_view kHead = "lm_head.weight";

/// Every tensor of a layer, after the layer's own prefix.
std::vector<std::string> layer_tensors(const costmodel::BackboneShape& backbone) {
  std::vector<std::string> names = {"input_layernorm.weight", "post_attention_layernorm.weight"};
  for (const char* module : {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"}) {
    names.push_back(fmt::format("{}.weight", module));
    if (backbone.qkv_bias) names.push_back(fmt::format("{}.bias", module));
  }
  for (const char* module : {"self_attn.o_proj", "mlp.gate_proj", "mlp.up_proj", "mlp.down_proj"})
    names.push_back(fmt::format("{}.weight", module));
  if (backbone.qk_norm) names.insert(names.end(), {"self_attn.q_norm.weight", "self_attn.k_norm.weight"});
  return names;
}

/// Older files store the rotary frequencies, which config.json gives.
bool harmless(std::string_view name) {
  return name.ends_with("rotary_emb.inv_freq");
}

}  // namespace

WeightNames::WeightNames(const SafetensorsFolder& tensors, const costmodel::BackboneShape& backbone) {
  if (tensors.find("model.embed_tokens.weight") || !tensors.find("embed_tokens.weight")) prefix_ = "model.";
  embedding_ = prefix_ + "embed_tokens.weight";
  head_ = kHead;
  std::set<std::string, std::less<>> taken = {embedding_, head_, final_norm()};
  for (std::int64_t i = 0; i < backbone.layers; ++i) {
    for (const std::string& name : layer_tensors(backbone)) taken.insert(layer(i) + name);
  }
  std::vector<std::string> beside;
  for (const std::string& name : tensors.names()) {
    if (taken.contains(name) || harmless(name)) continue;
    if (name.starts_with(layer(backbone.layers)))
      throw error("{}: holds {:?}, but config.json says {} layers; give the config.json of these weights",
                  tensors.find(name)->file.string(), name, backbone.layers);
    if (name.starts_with(prefix_) || name.starts_with("lm_head."))
      throw error("{}: tensor {:?} is none that a backbone as config.json describes it has; use one without it",
                  tensors.find(name)->file.string(), name);
    beside.push_back(fmt::format("{:?}", name));
  }
  if (!beside.empty())
    notice(fmt::format("{}: ignored, as they stand beside the backbone: {}", tensors.source().string(),
                       fmt::join(beside, ", ")));
  if (!backbone.tied_head) return;
  // Either may stand for both.
  if (!tensors.find(embedding_) && tensors.find(kHead)) embedding_ = kHead;
  if (!tensors.find(kHead) || tensors.same_numbers(embedding_, kHead)) {
    head_ = embedding_;
    return;
  }
  notice(
      fmt::format("{}: config.json ties the head to the embedding, but {} is there and differs; it is used, as "
                  "transformers 5 does (set tie_word_embeddings to false)",
                  tensors.source().string(), kHead));
}

std::string WeightNames::layer(std::int64_t layer) const {
  return fmt::format("{}layers.{}.", prefix_, layer);
}

}  // namespace braid::exec
