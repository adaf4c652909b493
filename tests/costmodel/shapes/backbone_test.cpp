#include "costmodel/shapes/backbone.h"

#include <algorithm>
#include <cstring>
#include <map>

#include "base/node.h"
#include "support.h"

namespace braid::costmodel {
namespace {

/// Writes config.json with `changes` over one that is fine; an empty value leaves the key out.
BackboneShape read_with(const std::map<std::string, std::string>& changes) {
  std::map<std::string, std::string> fields = {
      {"model_type", R"("llama")"}, {"hidden_act", R"("silu")"},  {"num_hidden_layers", "3"},
      {"hidden_size", "64"},        {"intermediate_size", "112"}, {"num_attention_heads", "4"},
      {"num_key_value_heads", "2"}, {"vocab_size", "160"},        {"max_position_embeddings", "256"},
      {"rms_norm_eps", "1e-05"},    {"rope_theta", "10000.0"},    {"tie_word_embeddings", "false"},
      {"attention_bias", "false"}};
  for (const auto& [key, value] : changes) fields[key] = value;
  std::string text;
  for (const auto& [key, value] : fields) {
    if (!value.empty()) text += fmt::format("{}\n  \"{}\": {}", text.empty() ? "{" : ",", key, value);
  }
  const TestFolder folder;
  folder.write("config.json", text + "\n}\n");
  BackboneShape shape = read_backbone(folder.path());
  shape.name.clear();  // the folder's, another each time
  return shape;
}

TEST(Backbone, ReadsWhatConfigSays) {
  const BackboneShape shape = read_with({});
  EXPECT_EQ(shape.architecture, Architecture::llama);
  EXPECT_EQ(shape.layers, 3);
  EXPECT_EQ(shape.hidden, 64);
  EXPECT_EQ(shape.intermediate, 112);
  EXPECT_EQ(shape.heads, 4);
  EXPECT_EQ(shape.kv_heads, 2);
  EXPECT_EQ(shape.head_dim, 16);
  EXPECT_EQ(shape.vocabulary, 160);
  EXPECT_EQ(shape.max_position, 256);
  EXPECT_FALSE(shape.tied_head);
  EXPECT_FALSE(shape.qkv_bias);
  EXPECT_EQ(shape.norm_epsilon, 1e-5);
  EXPECT_EQ(shape.rope_theta, 10000.0);
  EXPECT_EQ(shape.rope_scaling, RopeScaling{});
  EXPECT_EQ(shape.query_width(), 64);
  EXPECT_EQ(shape.kv_width(), 32);
  EXPECT_EQ(shape.qkv_width(), 128);
}

TEST(Backbone, WhatIsLeftOutTakesTransformersDefault) {
  const BackboneShape shape = read_with({{"num_key_value_heads", ""},
                                         {"rms_norm_eps", ""},
                                         {"rope_theta", ""},
                                         {"tie_word_embeddings", ""},
                                         {"attention_bias", ""}});
  EXPECT_EQ(shape.kv_heads, 4);
  EXPECT_EQ(shape.norm_epsilon, 1e-6);
  EXPECT_EQ(shape.rope_theta, 10000.0);
  EXPECT_FALSE(shape.tied_head);
  EXPECT_EQ(read_with({{"head_dim", "null"}}).head_dim, 16);
  EXPECT_EQ(read_with({{"head_dim", "40"}}).head_dim, 40);
  EXPECT_EQ(read_with({{"rope_scaling", R"({"rope_type": "default"})"}}).rope_scaling, RopeScaling{});
  EXPECT_EQ(read_with({{"use_sliding_window", "false"}, {"sliding_window", "null"}}), read_with({}));
}

TEST(Backbone, NullIsTransformersDefaultAndTheLastOfTwoKeysCounts) {
  EXPECT_EQ(read_with({{"attention_bias", "null"}, {"mlp_bias", "null"}, {"rope_scaling", "null"}}), read_with({}));
  EXPECT_EQ(read_with({{"head_dim", "40,\n  \"head_dim\": 16"}}), read_with({}));
}

TEST(Backbone, KeysThatChangeNothingAreIgnored) {
  const BackboneShape plain = read_with({});
  for (const char* key : {"dtype", "torch_dtype", "transformers_version", "use_cache", "_name_or_path", "architectures",
                          "pad_token_id", "initializer_range", "a_key_of_nobody"})
    EXPECT_EQ(read_with({{key, "7"}}), plain) << key;
  // Values that say that nothing is changed.
  for (const auto& [key, value] : std::map<std::string, std::string>{{"attention_dropout", "0.0"},
                                                                     {"pretraining_tp", "1"},
                                                                     {"partial_rotary_factor", "1.0"},
                                                                     {"logit_scale", "1"},
                                                                     {"num_experts", "0"},
                                                                     {"no_rope_layers", "[]"},
                                                                     {"quantization_config", "null"},
                                                                     {"final_logit_softcapping", "null"},
                                                                     {"hidden_act", "\"swish\""}})
    EXPECT_EQ(read_with({{key, value}}), plain) << key;
}

TEST(Backbone, AWindowThatLlamaIsToldNotToUseIsNone) {
  EXPECT_EQ(read_with({{"sliding_window", "128"}, {"use_sliding_window", "false"}}), read_with({}));
  expect_error([] { read_with({{"use_sliding_window", "true"}}); }, "a Llama backbone with a sliding window");
}

TEST(Backbone, UnknownKeysAreNamedOnce) {
  ::testing::internal::CaptureStderr();
  read_with({{"a_key_of_nobody", "7"}, {"another", "[1]"}, {"empty", "null"}, {"off", "false"}, {"use_cache", "true"}});
  const std::string told = ::testing::internal::GetCapturedStderr();
  EXPECT_PRED2(contains, told, "config.json: ignored");
  EXPECT_PRED2(contains, told, R"("a_key_of_nobody", "another")");
  EXPECT_EQ(std::count(told.begin(), told.end(), '\n'), 1) << told;
  for (const char* silent : {"empty", "off", "use_cache"}) EXPECT_FALSE(contains(told, silent)) << told;
}

TEST(Backbone, WhatIsNotSupportedIsRefusedByName) {
  const auto refused = [](const std::string& key, const std::string& value, const std::string& what) {
    expect_error([&] { read_with({{key, value}}); }, "config.json:", what, "; ");
  };
  refused("model_type", R"("phi3")", "model_type 'phi3' is not supported; supported: llama, mistral, qwen2, qwen3");
  refused("model_type", "", "model_type '' is not supported");
  refused("hidden_act", R"("gelu")", "hidden_act 'gelu' is not supported; supported: silu");
  refused("attention_bias", "true", "'attention_bias' is not supported");
  refused("sliding_window", "128", "a Llama backbone with a sliding window is not supported");
  for (const char* key : {"mlp_bias", "use_qk_norm", "parallel_attn", "alibi"})
    refused(key, "true", "is not supported: it changes what the layers compute");
  refused("quantization_config", R"({"bits": 4})", "'quantization_config' is not supported");
  for (const char* key :
       {"logit_scale", "embedding_multiplier", "attention_multiplier", "residual_multiplier", "final_logit_softcapping",
        "query_pre_attn_scalar", "partial_rotary_factor", "attention_dropout", "num_experts", "kv_lora_rank"})
    refused(key, "0.5", fmt::format("'{}' is not supported", key));
}

const std::map<std::string, std::string> kNoTheta = {{"rope_theta", ""}};

BackboneShape with_rope(const std::string& key, const std::string& value,
                        std::map<std::string, std::string> others = {}) {
  others[key] = value;
  return read_with(others);
}

TEST(Backbone, BothFormsOfRopeSayTheSame) {
  const BackboneShape inside =
      with_rope("rope_parameters", R"({"rope_theta": 500000.0, "rope_type": "default"})", {{"rope_theta", ""}});
  EXPECT_EQ(inside.rope_theta, 500000.0);
  EXPECT_EQ(inside.rope_scaling, RopeScaling{});
  EXPECT_EQ(with_rope("rope_parameters", R"({"rope_theta": 500000.0, "rope_type": "default"})"), inside);
  const BackboneShape beside = with_rope("rope_scaling", R"({"type": "linear", "factor": 2.0})");
  EXPECT_EQ(beside.rope_scaling.kind, RopeKind::linear);
  EXPECT_EQ(beside.rope_scaling.factor, 2.0);
  EXPECT_EQ(with_rope("rope_parameters", R"({"rope_theta": 10000.0, "rope_type": "linear", "factor": 2})", kNoTheta),
            beside);
  EXPECT_EQ(with_rope("rope_scaling", R"({"rope_type": "linear", "factor": 2.0})",
                      {{"rope_parameters", R"({"rope_theta": 10000.0, "rope_type": "linear", "factor": 2.0})"}}),
            beside);
  expect_error(
      [] {
        with_rope("rope_scaling", R"({"rope_type": "linear", "factor": 2.0})",
                  {{"rope_parameters", R"({"rope_theta": 10000.0, "rope_type": "linear", "factor": 4.0})"}});
      },
      "'rope_parameters' and 'rope_scaling' say different things");
  expect_error([] { with_rope("rope_parameters", R"({"rope_type": "default"})", kNoTheta); },
               "'rope_parameters' has no rope_theta");
}

TEST(Backbone, YarnTakesTransformersDefaults) {
  const auto yarn = [](const std::string& more) {
    return with_rope("rope_scaling", R"({"type": "yarn")" + more + "}").rope_scaling;
  };
  const RopeScaling plain = yarn(R"(, "factor": 4.0)");
  EXPECT_EQ(plain.kind, RopeKind::yarn);
  EXPECT_EQ(plain.original_max_position, 256.0);
  EXPECT_EQ(plain.beta_fast, 32.0);
  EXPECT_EQ(plain.beta_slow, 1.0);
  EXPECT_TRUE(plain.truncate);
  EXPECT_NEAR(plain.attention_factor, 1.1386294361119891, 1e-12);
  EXPECT_EQ(yarn(R"(, "factor": 4.0, "beta_fast": 0, "mscale": 1.0)"), plain);
  EXPECT_EQ(yarn(R"(, "factor": null, "original_max_position_embeddings": 64)").factor, 4.0);
  EXPECT_EQ(yarn(R"(, "factor": 4.0, "attention_factor": 0.5)").attention_factor, 0.5);
  EXPECT_NEAR(yarn(R"(, "factor": 4.0, "mscale": 2.0, "mscale_all_dim": 1.0)").attention_factor,
              1.2772588722239782 / 1.1386294361119891, 1e-12);
  EXPECT_FALSE(yarn(R"(, "factor": 4.0, "truncate": false)").truncate);
  EXPECT_EQ(with_rope("rope_scaling", R"({"type": "yarn", "factor": 4.0, "original_max_position_embeddings": 64})",
                      {{"original_max_position_embeddings", "32"}})
                .rope_scaling.original_max_position,
            32.0);
}

TEST(Backbone, RopeThatIsNotSupportedIsRefusedByName) {
  const auto refused = [](const std::string& value, const std::string& what) {
    expect_error([&] { with_rope("rope_scaling", value); }, "config.json:", what, "; ");
    expect_error([&] { with_rope("rope_parameters", value); }, "config.json:", what, "; ");
  };
  refused(R"({"type": "dynamic", "factor": 2.0})", "rope_type \"dynamic\" is not supported");
  refused(R"({"rope_type": "longrope", "factor": 2.0})", "rope_type \"longrope\" is not supported");
  refused(R"({"rope_type": "default", "mrope_section": [1, 2]})", "rope_type 'default' has no \"mrope_section\"");
  refused(R"({"factor": 2.0})", "has \"factor\" but no rope_type");
  refused(R"({"rope_type": "linear"})", "'factor' is missing");
  refused(R"({"rope_type": "linear", "factor": 0.5})", "'factor' is '0.5'");
  refused(R"({"rope_type": "default", "partial_rotary_factor": 0.5})", "'partial_rotary_factor' is not supported");
  refused(R"({"full_attention": {"rope_type": "default"}})", "has rules of its own for \"full_attention\"");
  refused(R"({"rope_type": "llama3", "factor": 8.0})", "'low_freq_factor' is missing");
  refused("[1]", "is no map");
  refused(R"({"rope_type": "a\nb"})", R"(rope_type "a\nb" is not supported)");
  refused(R"({"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 4.0, "high_freq_factor": 4.0})",
          "high_freq_factor is not above low_freq_factor");
}

TEST(Backbone, MistralAndQwen3AreReadWithTheirOwnDefaults) {
  const auto mistral = [](const std::string& window) {
    return read_with({{"model_type", R"("mistral")"}, {"sliding_window", window}});
  };
  EXPECT_EQ(mistral("null").sliding_window, 0);
  EXPECT_EQ(mistral("64").sliding_window, 64);
  EXPECT_EQ(mistral("").sliding_window, 4096);
  EXPECT_FALSE(mistral("null").qk_norm);
  const BackboneShape qwen3 = read_with({{"model_type", R"("qwen3")"}});
  EXPECT_TRUE(qwen3.qk_norm);
  EXPECT_FALSE(qwen3.qkv_bias);
  EXPECT_EQ(qwen3.head_dim, 128);
  EXPECT_EQ(qwen3.sliding_window, 0);
  const BackboneShape plain = read_with({{"head_dim", "128"}});
  EXPECT_EQ(qwen3.parameters(), plain.parameters() + 3 * 2 * 128);
}

TEST(Backbone, QwensWindowCountsWhereAnyLayerHasIt) {
  const auto window = [](const std::string& use, const std::string& first, const std::string& types) {
    return read_with({{"model_type", R"("qwen2")"},
                      {"use_sliding_window", use},
                      {"sliding_window", "32"},
                      {"max_window_layers", first},
                      {"layer_types", types}})
        .sliding_window;
  };
  EXPECT_EQ(window("false", "0", ""), 0);
  EXPECT_EQ(window("true", "2", ""), 32);
  EXPECT_EQ(window("true", "3", ""), 0);
  EXPECT_EQ(window("true", "0", R"(["full_attention", "full_attention", "full_attention"])"), 0);
  EXPECT_EQ(window("true", "3", R"(["full_attention", "full_attention", "sliding_attention"])"), 32);
  expect_error([&] { window("true", "3", R"(["linear_attention"])"); }, "layer type 'linear_attention'");
}

TEST(Backbone, AModelOfTheHubsCacheIsTheSnapshotOfItsMain) {
  const TestFolder folder;
  const std::string model = "models--org--tiny-llama/";
  folder.write(model + "snapshots/abc/config.json", read_file(golden("llama") / "config.json"));
  const std::filesystem::path whole = folder / "models--org--tiny-llama";
  expect_error([&] { read_backbone(whole); }, "without refs/main; give one of the folders in ", "snapshots");
  folder.write(model + "refs/main", "gone");
  expect_error([&] { read_backbone(whole); }, "refs/main: names no folder of ");
  folder.write(model + "refs/main", "..");
  expect_error([&] { read_backbone(whole); }, "refs/main: names no folder of ");
  folder.write(model + "refs/main", "abc\n");
  EXPECT_EQ(backbone_folder(whole), whole / "snapshots" / "abc");
  EXPECT_EQ(read_backbone(whole).name, "tiny-llama");
  EXPECT_EQ(read_backbone(whole), read_backbone(whole / "snapshots" / "abc"));
}

TEST(Backbone, NumbersThatMakeNoNetworkAreRefused) {
  const auto refused = [](const std::string& key, const std::string& value, const std::string& what) {
    expect_error([&] { read_with({{key, value}}); }, "config.json:", what, "; ");
  };
  for (const char* key : {"num_hidden_layers", "hidden_size", "intermediate_size", "num_attention_heads",
                          "num_key_value_heads", "vocab_size", "max_position_embeddings"}) {
    refused(key, "0", fmt::format("'{}' is '0'", key));
    refused(key, "-1", fmt::format("'{}' is '-1'", key));
    refused(key, "2.5", fmt::format("'{}' is '2.5'", key));
    refused(key, "\"2\"", fmt::format("'{}' is '2'", key));
    refused(key, "99999999999999", fmt::format("'{}' is '99999999999999'", key));
  }
  for (const char* key :
       {"num_hidden_layers", "hidden_size", "intermediate_size", "num_attention_heads", "vocab_size"}) {
    refused(key, "", fmt::format("'{}' is missing", key));
  }
  refused("num_key_value_heads", "3", "3 key/value heads do not divide 4 query heads");
  refused("num_key_value_heads", "8", "'num_key_value_heads' is '8'");
  refused("head_dim", "15", "head size 15 is odd");
  refused("rms_norm_eps", "-1.0", "'rms_norm_eps' is '-1.0'");
}

TEST(Backbone, AFolderThatIsNoneIsRefused) {
  const TestFolder folder;
  expect_error([&] { read_backbone(folder / "none"); }, "none: no such backbone; ", "llama2-7b");
  expect_error([&] { read_backbone(folder.path()); }, "config.json: cannot be read");
  folder.write("config.json", "{");
  expect_error([&] { read_backbone(folder.path()); }, "config.json:1: not valid JSON");
}

TEST(Backbone, TheNameIsTheFolders) {
  EXPECT_EQ(read_backbone(golden("llama")).name, "llama");
  EXPECT_EQ(read_backbone(golden("llama") / "").name, "llama");
}

TEST(Backbone, ReadsConfigsAsTransformersWritesThem) {
  const BackboneShape llama = read_backbone(golden("llama"));
  EXPECT_EQ(llama.architecture, Architecture::llama);
  EXPECT_EQ(llama.layers, 2);
  EXPECT_FALSE(llama.tied_head);
  EXPECT_EQ(llama.rope_scaling, RopeScaling{});

  const BackboneShape stretched = read_backbone(golden("llama3_rope"));
  EXPECT_TRUE(stretched.tied_head);
  EXPECT_EQ(stretched.rope_theta, 500000.0);
  EXPECT_EQ(stretched.rope_scaling, (RopeScaling{RopeKind::llama3, 8.0, 1.0, 4.0, 64.0}));

  const BackboneShape qwen = read_backbone(golden("qwen25"));
  EXPECT_EQ(qwen.architecture, Architecture::qwen2);
  EXPECT_TRUE(qwen.qkv_bias);
  EXPECT_TRUE(qwen.tied_head);
  EXPECT_EQ(qwen.head_dim, 8);
  EXPECT_EQ(qwen.norm_epsilon, 1e-6);
}

/// Numbers in all tensors of a safetensors file, by its header.
std::int64_t stored_numbers(const std::filesystem::path& file) {
  const std::string content = read_file(file);
  std::uint64_t length = 0;
  std::memcpy(&length, content.data(), sizeof length);
  const Node header = parse_json(std::string_view(content).substr(sizeof length, length), file.string());
  std::int64_t total = 0;
  for (const auto& [name, tensor] : header.fields) {
    if (name == "__metadata__") continue;
    std::int64_t numbers = 1;
    for (const Node& extent : tensor.at("shape").items) numbers *= extent.as_integer("shape");
    total += numbers;
  }
  return total;
}

TEST(Backbone, ParametersAreAsManyAsTheWeightsStored) {
  for (const char* name : {"llama", "llama3_rope", "qwen25"}) {
    std::int64_t stored = 0;
    for (const auto& entry : std::filesystem::directory_iterator(golden(name))) {
      const std::string file = entry.path().filename();
      if (file.starts_with("model") && file.ends_with(".safetensors")) stored += stored_numbers(entry.path());
    }
    EXPECT_EQ(read_backbone(golden(name)).parameters(), stored) << name;
  }
}

TEST(Backbone, BuiltInShapesHaveThePublishedParameters) {
  const std::map<std::string, std::int64_t> published = {
      {"llama2-7b", 6'738'415'616},     {"llama2-13b", 13'015'864'320},   {"llama2-70b", 68'976'648'192},
      {"llama3.1-8b", 8'030'261'248},   {"llama3.1-70b", 70'553'706'496}, {"qwen2.5-32b", 32'763'876'352},
      {"tinyllama-1.1b", 1'100'048'384}};
  for (const auto& [name, parameters] : published) {
    EXPECT_EQ(builtin_backbone(name).parameters(), parameters) << name;
    EXPECT_EQ(builtin_backbone(name).name, name);
  }
  for (const std::string& name : builtin_backbone_names()) EXPECT_EQ(builtin_backbone(name).name, name);
  expect_error([] { builtin_backbone("llama9"); }, "unknown backbone 'llama9'; known: ", "llama2-7b", "qwen2.5-32b");
}

BackboneShape read_text(const std::string& text) {
  const TestFolder folder;
  folder.write("config.json", text);
  return read_backbone(folder.path());
}

TEST(Backbone, ReadsGpt2AndOptWithTheirOwnNames) {
  const BackboneShape gpt2 = read_text(
      R"({"model_type": "gpt2", "n_layer": 12, "n_embd": 768, "n_head": 12, "vocab_size": 50257, "n_positions": 1024})");
  EXPECT_EQ(gpt2.architecture, Architecture::gpt2);
  EXPECT_EQ(gpt2.intermediate, 3072);
  EXPECT_TRUE(gpt2.tied_head);
  // The published count of GPT-2 small.
  EXPECT_EQ(gpt2.parameters(), 124439808);
  const BackboneShape opt = read_text(
      R"({"model_type": "opt", "num_hidden_layers": 12, "hidden_size": 768, "num_attention_heads": 12, "ffn_dim": 3072,
          "vocab_size": 50272, "max_position_embeddings": 2048, "word_embed_proj_dim": 768})");
  // OPT-125M's, with the two rows of positions that no token has.
  EXPECT_EQ(opt.parameters(), 125239296);
  expect_error(
      [] {
        read_text(R"({"model_type": "opt", "num_hidden_layers": 24, "hidden_size": 1024, "num_attention_heads": 16,
                  "vocab_size": 50272, "word_embed_proj_dim": 512})");
      },
      "'word_embed_proj_dim' is not supported here");
}

TEST(Backbone, BuiltinsHaveTheirPublishedSizes) {
  const std::map<std::string, double> billions = {
      {"llama2-7b", 6.738},      {"llama2-13b", 13.016},   {"llama2-70b", 68.977},
      {"llama3.1-8b", 8.030},    {"llama3.1-70b", 70.554}, {"qwen2.5-32b", 32.764},
      {"tinyllama-1.1b", 1.100}, {"gpt3-2.7b", 2.65},      {"opt-30b", 29.97}};
  for (const std::string& name : builtin_backbone_names()) {
    ASSERT_TRUE(billions.contains(name)) << name;
    EXPECT_NEAR(static_cast<double>(builtin_backbone(name).parameters()) / 1e9 / billions.at(name), 1, 0.002) << name;
  }
}

}  // namespace
}  // namespace braid::costmodel
