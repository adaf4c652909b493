#include "workload/peft_config.h"

#include <gtest/gtest.h>

#include "costmodel/shapes/family.h"
#include "workload/texts.h"

namespace braid::workload {
namespace {

using costmodel::AdapterShape;
using costmodel::kModules;
using costmodel::Module;

const ModuleNames kNames = {3};
const ModuleNames kGpt2 = {2, costmodel::Architecture::gpt2}, kOpt = {2, costmodel::Architecture::opt};

AdapterShape shape(std::initializer_list<Module> targets) {
  AdapterShape shape;
  shape.rank = 8, shape.alpha = 16;
  for (const Module module : targets) shape.targets[static_cast<std::size_t>(module)] = true;
  return shape;
}

Node parsed(const std::string& json) {
  return parse_json(json, "adapter_config.json");
}

std::vector<Module> targets(const std::string& json, const ModuleNames& names = kNames) {
  const auto selected = targets_from(parsed(json), names);
  std::vector<Module> all;
  for (const Module module : kModules) {
    if (selected[static_cast<std::size_t>(module)]) all.push_back(module);
  }
  return all;
}

std::string refusal(const std::string& json) {
  return error_of([&] { targets(json); });
}

using Modules = std::vector<Module>;

TEST(PeftTargets, AllLinearIsEveryLayerOfTheBackbone) {
  EXPECT_EQ(targets("\"all-linear\""), Modules(kModules.begin(), kModules.end() - 1));
  EXPECT_EQ(targets("\"All-Linear\"").size(), 7u);
  EXPECT_EQ(targets("\"all-linear\"", kOpt),
            (Modules{Module::q, Module::k, Module::v, Module::o, Module::up, Module::down}));
  EXPECT_EQ(targets("\"all-linear\"", kGpt2), (Modules{Module::o, Module::up, Module::down, Module::qkv}));
}

TEST(PeftTargets, AnExpressionMatchesWholeNames) {
  EXPECT_EQ(targets(R"(".*\\.(q|v)_proj")"), (Modules{Module::q, Module::v}));
  EXPECT_EQ(targets(R"("model\\.layers\\.\\d+\\.mlp\\.(up|down)_proj")"), (Modules{Module::up, Module::down}));
  EXPECT_TRUE(contains(refusal("\"q_proj\""), "matches no whole name")) << refusal("\"q_proj\"");
  EXPECT_TRUE(contains(refusal("\"(.*\""), "is no regular expression")) << refusal("\"(.*\"");
}

TEST(PeftTargets, AListHoldsNamesOrWhatNamesEndWith) {
  EXPECT_EQ(targets(R"(["q_proj", "self_attn.v_proj", "mlp.up_proj"])"), (Modules{Module::q, Module::v, Module::up}));
  // No part of a name between dots: PEFT's endswith is of ".proj".
  EXPECT_TRUE(contains(refusal(R"(["proj"])"), "unknown module 'proj'"));
}

TEST(PeftTargets, AFamilyHasNamesOfItsOwn) {
  EXPECT_EQ(targets(R"(["out_proj", "fc1", "fc2"])", kOpt), (Modules{Module::o, Module::up, Module::down}));
  EXPECT_EQ(targets(R"(["c_attn", "c_proj"])", kGpt2), (Modules{Module::o, Module::down, Module::qkv}));
  EXPECT_EQ(targets(R"(["attn.c_proj"])", kGpt2), (Modules{Module::o}));
  EXPECT_EQ(targets(R"x("transformer\\.h\\.\\d+\\.mlp\\.c_(fc|proj)")x", kGpt2), (Modules{Module::up, Module::down}));
  // Plans say them as Llama does.
  EXPECT_EQ(targets(R"(["o_proj", "up_proj"])", kOpt), (Modules{Module::o, Module::up}));
  EXPECT_EQ(targets(R"(["q_proj", "v_proj"])", kGpt2), (Modules{Module::q, Module::v}));
  EXPECT_EQ(targets(R"(["qkv_proj"])", kGpt2), (Modules{Module::qkv}));
  EXPECT_TRUE(contains(error_of([] { targets(R"(["c_attn", "q_proj"])", kGpt2); }), "selects c_attn and parts of it"));
  EXPECT_TRUE(contains(error_of([] { targets(R"(["query"])", kOpt); }),
                       "unknown module 'query'; valid: q_proj, k_proj, v_proj, out_proj, fc1, fc2"));
  EXPECT_TRUE(contains(error_of([] { targets(R"(["wte"])", kGpt2); }), "target_modules selects transformer.wte"));
  EXPECT_TRUE(contains(refusal(R"(["c_attn"])"), "unknown module 'c_attn'; valid: q_proj, k_proj, "));
  EXPECT_EQ(costmodel::target_name(costmodel::Architecture::gpt2, Module::down), "mlp.c_proj");
  EXPECT_EQ(costmodel::target_name(costmodel::Architecture::gpt2, Module::qkv), "c_attn");
}

TEST(PeftTargets, WhatNoLayerOfOursHasIsNamed) {
  EXPECT_TRUE(contains(refusal(R"(["q_proj", "lm_head"])"), "target_modules selects lm_head"));
  EXPECT_TRUE(contains(refusal("\".*\""), "target_modules selects lm_head"));
  EXPECT_TRUE(contains(refusal(R"(".*layers\\.[01]\\..*q_proj")"), "target_modules selects q_proj in 2 of 3 layers"));
  EXPECT_TRUE(contains(refusal(R"(["layers.0.self_attn.q_proj"])"), "selects q_proj in 1 of 3 layers"));
  EXPECT_TRUE(contains(error_of([] { targets(R"(["gate_proj"])", kOpt); }), "no gate_proj"));
}

TEST(PeftPatterns, TheFirstKeyThatANameEndsWithCounts) {
  const AdapterShape adapter = shape({Module::q, Module::v, Module::down});
  const auto ranks = ranks_from(parsed(R"({"self_attn.q_proj": 4, "(q|v)_proj": 2})"), adapter, kNames);
  AdapterShape patterned = adapter;
  patterned.module_ranks = ranks;
  EXPECT_EQ(patterned.rank_of(Module::q), 4);
  EXPECT_EQ(patterned.rank_of(Module::v), 2);
  EXPECT_EQ(patterned.rank_of(Module::down), 8);
  EXPECT_EQ(kept_width(patterned, costmodel::BackboneShape()), 14);
  patterned.module_alphas = alphas_from(parsed(R"({"down_proj": 64})"), adapter, kNames);
  EXPECT_DOUBLE_EQ(patterned.scaling(Module::down), 8);
  EXPECT_DOUBLE_EQ(patterned.scaling(Module::q), 4);
}

TEST(PeftPatterns, WhatNoTargetHasOrLayersHaveApartIsRefused) {
  const AdapterShape adapter = shape({Module::q, Module::v});
  const auto refused = [&](const std::string& json) {
    return error_of([&] { ranks_from(parsed(json), adapter, kNames); });
  };
  EXPECT_TRUE(contains(refused(R"({"o_proj": 4})"), "'o_proj' is none of the targets q_proj v_proj"));
  EXPECT_TRUE(
      contains(refused(R"({"layers.1.self_attn.q_proj": 4})"), "one value in some layers and another in others"));
  EXPECT_TRUE(contains(refused(R"({"q_proj": 0})"), "'rank_pattern' is '0'"));
  EXPECT_TRUE(contains(refused(R"({"q_proj(": 2})"), "is no regular expression"));
  EXPECT_TRUE(contains(refused(R"([1])"), "rank_pattern is no map"));
  EXPECT_TRUE(contains(error_of([&] { alphas_from(parsed(R"({"q_proj": -1})"), adapter, kNames); }),
                       "alpha_pattern -1 is not usable"));
}

/// As PEFT 0.21 writes it for r 8, alpha 16 on q and v, with one key more or other.
std::string config_with(const std::string& key, const std::string& value) {
  std::vector<std::pair<std::string, std::string>> fields = {{"alora_invocation_tokens", "null"},
                                                             {"alpha_pattern", "{}"},
                                                             {"bias", "\"none\""},
                                                             {"exclude_modules", "null"},
                                                             {"fan_in_fan_out", "false"},
                                                             {"init_lora_weights", "true"},
                                                             {"layers_to_transform", "null"},
                                                             {"lora_alpha", "16"},
                                                             {"lora_bias", "false"},
                                                             {"lora_dropout", "0.1"},
                                                             {"megatron_core", "\"megatron.core\""},
                                                             {"modules_to_save", "null"},
                                                             {"peft_type", "\"LORA\""},
                                                             {"peft_version", "\"0.21.2\""},
                                                             {"qalora_group_size", "16"},
                                                             {"r", "8"},
                                                             {"rank_pattern", "{}"},
                                                             {"target_modules", "[\"v_proj\", \"q_proj\"]"},
                                                             {"task_type", "\"CAUSAL_LM\""},
                                                             {"use_dora", "false"},
                                                             {"use_rslora", "false"}};
  bool known = false;
  for (auto& [name, text] : fields) {
    if (name == key) text = value, known = true;
  }
  if (!known) fields.emplace_back(key, value);
  std::string json;
  for (const auto& [name, text] : fields) json += fmt::format("{}\"{}\": {}", json.empty() ? "{" : ", ", name, text);
  return json + "}";
}

std::string refused_with(const std::string& key, const std::string& value) {
  return error_of([&] { check_peft_config(parsed(config_with(key, value)), shape({Module::q, Module::v}), kNames); });
}

TEST(PeftConfig, WhatIsTheSameOrChangesNothingIsTaken) {
  for (const auto& [key, value] : {std::pair<const char*, const char*>{"r", "8"},
                                   {"base_model_name_or_path", "\"org/name\""},
                                   {"init_lora_weights", "\"gaussian\""},
                                   {"inference_mode", "true"},
                                   {"target_modules", "\".*_proj.*(q|v)_proj|.*\\\\.[qv]_proj\""},
                                   {"rank_pattern", "{\"q_proj\": 8}"},
                                   {"some_new_config", "null"},
                                   {"use_new_thing", "false"}})
    EXPECT_NO_THROW(check_peft_config(parsed(config_with(key, value)), shape({Module::q, Module::v}), kNames)) << key;
}

TEST(PeftConfig, EveryKeyThatChangesTheArithmeticIsRefusedByName) {
  for (const auto& [key, value] : {std::pair<const char*, const char*>{"use_dora", "true"},
                                   {"bias", "\"lora_only\""},
                                   {"bias", "\"all\""},
                                   {"lora_bias", "true"},
                                   {"fan_in_fan_out", "true"},
                                   {"modules_to_save", "[\"lm_head\"]"},
                                   {"trainable_token_indices", "[3]"},
                                   {"layer_replication", "[[0, 2]]"},
                                   {"exclude_modules", "[\"q_proj\"]"},
                                   {"layers_to_transform", "[0]"},
                                   {"layers_to_transform", "0"},
                                   {"target_parameters", "[\"w\"]"},
                                   {"alora_invocation_tokens", "[5]"},
                                   {"use_qalora", "true"},
                                   {"init_lora_weights", "\"pissa\""},
                                   {"init_lora_weights", "\"pissa_niter_4\""},
                                   {"init_lora_weights", "\"olora\""},
                                   {"some_new_config", "{\"a\": 1}"},
                                   {"use_new_thing", "true"},
                                   {"alpha_pattern", "{\"q_proj\": 64}"},
                                   {"rank_pattern", "{\"q_proj\": 2}"},
                                   {"use_rslora", "true"},
                                   {"r", "4"},
                                   {"lora_alpha", "8"},
                                   {"target_modules", "[\"q_proj\"]"},
                                   {"peft_type", "\"LOHA\""}}) {
    const std::string message = refused_with(key, value);
    EXPECT_TRUE(contains(message, key)) << key << " " << value << ": " << message;
    EXPECT_TRUE(contains(message, "adapter_config.json:1: ")) << message;
    EXPECT_TRUE(contains(message, "; ")) << message;
  }
}

}  // namespace
}  // namespace braid::workload
