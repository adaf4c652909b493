#include "costmodel/shapes/family.h"

#include <algorithm>

#include <fmt/format.h>

namespace braid::costmodel {
namespace {

constexpr std::size_t place(Module module) {
  return static_cast<std::size_t>(module);
}
constexpr std::size_t place(Slot slot) {
  return static_cast<std::size_t>(slot);
}

constexpr FamilyNames llama() {
  FamilyNames names{"model.", "layers.", "embed_tokens", "", "norm"};
  names.modules[place(Module::q)] = "self_attn.q_proj";
  names.modules[place(Module::k)] = "self_attn.k_proj";
  names.modules[place(Module::v)] = "self_attn.v_proj";
  names.modules[place(Module::o)] = "self_attn.o_proj";
  names.modules[place(Module::gate)] = "mlp.gate_proj";
  names.modules[place(Module::up)] = "mlp.up_proj";
  names.modules[place(Module::down)] = "mlp.down_proj";
  names.norms[place(Slot::attention_input)] = "input_layernorm";
  names.norms[place(Slot::feed_forward_input)] = "post_attention_layernorm";
  names.query_norm = "self_attn.q_norm";
  names.key_norm = "self_attn.k_norm";
  return names;
}

constexpr FamilyNames opt() {
  FamilyNames names{"model.decoder.", "layers.", "embed_tokens", "embed_positions", "final_layer_norm"};
  names.modules[place(Module::q)] = "self_attn.q_proj";
  names.modules[place(Module::k)] = "self_attn.k_proj";
  names.modules[place(Module::v)] = "self_attn.v_proj";
  names.modules[place(Module::o)] = "self_attn.out_proj";
  names.modules[place(Module::up)] = "fc1";
  names.modules[place(Module::down)] = "fc2";
  names.norms[place(Slot::attention_input)] = "self_attn_layer_norm";
  names.norms[place(Slot::feed_forward_input)] = "final_layer_norm";
  return names;
}

constexpr FamilyNames gpt2() {
  FamilyNames names{"transformer.", "h.", "wte", "wpe", "ln_f"};
  names.modules[place(Module::qkv)] = names.qkv = "attn.c_attn";
  names.modules[place(Module::o)] = "attn.c_proj";
  names.modules[place(Module::up)] = "mlp.c_fc";
  names.modules[place(Module::down)] = "mlp.c_proj";
  names.norms[place(Slot::attention_input)] = "ln_1";
  names.norms[place(Slot::feed_forward_input)] = "ln_2";
  names.transposed = true;
  return names;
}

constexpr FamilyNames kLlama = llama(), kOpt = opt(), kGpt2 = gpt2();

}  // namespace

const FamilyNames& family_names(Architecture architecture) {
  switch (architecture) {
    case Architecture::gpt2:
      return kGpt2;
    case Architecture::opt:
      return kOpt;
    case Architecture::llama:
    case Architecture::mistral:
    case Architecture::qwen2:
    case Architecture::qwen3:
      break;
  }
  return kLlama;
}

std::string_view target_name(Architecture architecture, Module module) {
  const FamilyNames& names = family_names(architecture);
  const auto last_part = [](std::string_view name) { return name.substr(name.rfind('.') + 1); };
  const std::string_view whole = names.name(module), last = last_part(whole);
  if (whole.empty()) return module_name(module);
  const auto alike = std::count_if(names.modules.begin(), names.modules.end(),
                                   [&](std::string_view other) { return last_part(other) == last; });
  return alike > 1 ? whole : last;
}

std::string layer_prefix(Architecture architecture, std::int64_t layer) {
  const FamilyNames& names = family_names(architecture);
  return fmt::format("{}{}{}.", names.model, names.layers, layer);
}

}  // namespace braid::costmodel
