#include "workload/backbone_json.h"

#include <nlohmann/json.hpp>

#include "workload/names.h"

namespace braid::workload {

std::string to_json(const costmodel::BackboneShape& shape) {
  // The bindings stop compiling when a shape gets another number, which would else be lost on the way.
  const auto& [name, architecture, layers, hidden, intermediate, heads, kv_heads, head_dim, vocabulary, max_position,
               tied_head, qkv_bias, norm_epsilon, rope_theta, rope_scaling, qk_norm, sliding_window, nonlinearity] =
      shape;
  const auto& [kind, factor, low, high, original, fast, slow, truncate, attention] = rope_scaling;
  nlohmann::ordered_json json;
  json["name"] = name;
  json["architecture"] = name_of(architecture, kArchitectures);
  json["layers"] = layers;
  json["hidden"] = hidden;
  json["intermediate"] = intermediate;
  json["heads"] = heads;
  json["kv_heads"] = kv_heads;
  json["head_dim"] = head_dim;
  json["vocabulary"] = vocabulary;
  json["max_position"] = max_position;
  json["tied_head"] = tied_head;
  json["qkv_bias"] = qkv_bias;
  json["norm_epsilon"] = norm_epsilon;
  json["rope_theta"] = rope_theta;
  json["rope_scaling"] = {{"kind", name_of(kind, kRopeKinds)},
                          {"factor", factor},
                          {"low_frequency_factor", low},
                          {"high_frequency_factor", high},
                          {"original_max_position", original},
                          {"beta_fast", fast},
                          {"beta_slow", slow},
                          {"truncate", truncate},
                          {"attention_factor", attention}};
  json["qk_norm"] = qk_norm;
  json["sliding_window"] = sliding_window;
  json["nonlinearity"] = name_of(nonlinearity, kNonlinearities);
  return json.dump(2);
}

namespace {

costmodel::RopeScaling scaling_from(const Node& node) {
  costmodel::RopeScaling scaling;
  // Older plans knew no rule but Llama 3.1's.
  if (const Node* llama3 = node.find("llama3")) {
    if (llama3->as_bool("llama3")) scaling.kind = costmodel::RopeKind::llama3;
  } else {
    scaling.kind = value_of(node.at("kind"), "kind", kRopeKinds);
  }
  scaling.factor = node.number_at("factor");
  scaling.low_frequency_factor = node.number_at("low_frequency_factor");
  scaling.high_frequency_factor = node.number_at("high_frequency_factor");
  scaling.original_max_position = node.number_at("original_max_position");
  scaling.beta_fast = node.number_or("beta_fast", scaling.beta_fast);
  scaling.beta_slow = node.number_or("beta_slow", scaling.beta_slow);
  scaling.truncate = node.bool_or("truncate", scaling.truncate);
  scaling.attention_factor = node.number_or("attention_factor", scaling.attention_factor);
  return scaling;
}

}  // namespace

costmodel::BackboneShape backbone_from(const Node& node) {
  costmodel::BackboneShape shape;
  shape.name = node.string_at("name");
  shape.architecture = value_of(node.at("architecture"), "architecture", kArchitectures);
  shape.layers = node.integer_at("layers", 1);
  shape.hidden = node.integer_at("hidden", 1);
  shape.intermediate = node.integer_at("intermediate", 1);
  shape.heads = node.integer_at("heads", 1);
  shape.kv_heads = node.integer_at("kv_heads", 1);
  shape.head_dim = node.integer_at("head_dim", 1);
  shape.vocabulary = node.integer_at("vocabulary", 1);
  shape.max_position = node.integer_at("max_position", 1);
  shape.tied_head = node.at("tied_head").as_bool("tied_head");
  shape.qkv_bias = node.at("qkv_bias").as_bool("qkv_bias");
  shape.norm_epsilon = node.number_at("norm_epsilon");
  shape.rope_theta = node.number_at("rope_theta");
  shape.rope_scaling = scaling_from(node.at("rope_scaling"));
  shape.qk_norm = node.bool_or("qk_norm", false);
  shape.sliding_window = node.integer_or("sliding_window", 0, 0);
  // Older plans did not say.
  const Node* nonlinearity = node.find("nonlinearity");
  shape.nonlinearity = nonlinearity ? value_of(*nonlinearity, "nonlinearity", kNonlinearities)
                                    : costmodel::usual_nonlinearity(shape.architecture);
  return shape;
}

}  // namespace braid::workload
