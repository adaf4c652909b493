#include "exec/weight_names.h"

#include <set>
#include <vector>

#include "base/error.h"
#include "base/notice.h"
#include "costmodel/shapes/layer_ops.h"

namespace braid::exec {
namespace {

using costmodel::LayerOp;
using costmodel::LayerWork;
using costmodel::Module;

/// Older files store the rotary frequencies, which config.json gives, and GPT-2's masks.
bool harmless(std::string_view name) {
  return name.ends_with("rotary_emb.inv_freq") || name.ends_with(".attn.bias") || name.ends_with(".attn.masked_bias");
}

/// The names of all tensors that the backbone has, but for embedding and head.
std::set<std::string, std::less<>> tensors_of(const WeightNames& names, const costmodel::BackboneShape& backbone) {
  std::set<std::string, std::less<>> all;
  const auto add = [&](const std::string& name, bool bias) {
    all.insert(name + ".weight");
    if (bias) all.insert(name + ".bias");
  };
  add(names.final_norm(), !backbone.gated());
  if (!backbone.rotary()) all.insert(names.positions());
  for (std::int64_t layer = 0; layer < backbone.layers; ++layer) {
    for (const LayerOp& op : costmodel::layer_ops(backbone)) {
      if (op.work == LayerWork::norm) add(names.norm(layer, op.to), !backbone.gated());
      if (op.work == LayerWork::head_norm) {
        add(names.query_norm(layer), false);
        add(names.key_norm(layer), false);
      }
      if (op.work != LayerWork::linear) continue;
      for (const Module module : costmodel::modules_of(backbone, op.group))
        add(names.module(layer, module).name, has_bias(backbone, op.group));
    }
  }
  return all;
}

}  // namespace

WeightNames::WeightNames(const SafetensorsFolder& tensors, const costmodel::BackboneShape& backbone)
    : backbone_(backbone), family_(costmodel::family_names(backbone.architecture)) {
  const std::string own_head = fmt::format("{}.weight", costmodel::kHeadName);
  const std::string_view whole = family_.model;
  // "model.decoder." is "decoder." without a head.
  const std::string_view bare = whole.substr(whole.find('.') + 1);
  const auto embedding_with = [&](std::string_view prefix) {
    return fmt::format("{}{}.weight", prefix, family_.embedding);
  };
  prefix_ = tensors.find(embedding_with(whole)) || !tensors.find(embedding_with(bare)) ? whole : bare;
  embedding_ = embedding_with(prefix_);
  head_ = own_head;
  std::set<std::string, std::less<>> taken = tensors_of(*this, backbone);
  taken.insert({embedding_, head_});
  std::vector<std::string> beside;
  for (const std::string& name : tensors.names()) {
    if (taken.contains(name) || harmless(name)) continue;
    if (name.starts_with(in_layer(backbone.layers, "")))
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
  if (!tensors.find(embedding_) && tensors.find(own_head)) embedding_ = own_head;
  if (!tensors.find(own_head) || tensors.same_numbers(embedding_, own_head)) {
    head_ = embedding_;
    return;
  }
  notice(
      fmt::format("{}: config.json ties the head to the embedding, but {} is there and differs; it is used, as "
                  "transformers 5 does (set tie_word_embeddings to false)",
                  tensors.source().string(), own_head));
}

std::string WeightNames::in_layer(std::int64_t layer, std::string_view name) const {
  return fmt::format("{}{}{}.{}", prefix_, family_.layers, layer, name);
}

std::string WeightNames::norm(std::int64_t layer, costmodel::Slot slot) const {
  return in_layer(layer, family_.norm(slot));
}

ModuleTensor WeightNames::module(std::int64_t layer, Module module) const {
  const auto [in, out] = costmodel::module_shape(backbone_, module);
  const bool fused = !family_.qkv.empty() && (module == Module::q || module == Module::k || module == Module::v);
  if (!fused) return {in_layer(layer, family_.name(module)), in, out, 0, family_.transposed};
  const std::int64_t first = module == Module::q   ? 0
                             : module == Module::k ? backbone_.query_width()
                                                   : backbone_.query_width() + backbone_.kv_width();
  return {in_layer(layer, family_.qkv), in, backbone_.qkv_width(), first, family_.transposed};
}

}  // namespace braid::exec
