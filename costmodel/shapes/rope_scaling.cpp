#include "costmodel/shapes/rope_scaling.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

namespace braid::costmodel {
namespace {

constexpr double kLeastFactor = 1.0;
constexpr std::string_view kRemedy = "use a backbone whose rope_type is default, linear, llama3 or yarn";

struct KindWords {
  std::string_view name;
  RopeKind kind;
  std::vector<std::string_view> keys;
};

/// Keys that every rule may have. A pre-training length says nothing to a rule that does not ask for it.
const std::vector<std::string_view> kCommonKeys = {
    "rope_type", "type", "rope_theta", "partial_rotary_factor", "original_max_position_embeddings", "finetuned"};
const KindWords kKinds[] = {
    {"default", RopeKind::plain, {}},
    {"linear", RopeKind::linear, {"factor"}},
    {"llama3", RopeKind::llama3, {"factor", "low_freq_factor", "high_freq_factor"}},
    {"yarn",
     RopeKind::yarn,
     {"factor", "attention_factor", "beta_fast", "beta_slow", "mscale", "mscale_all_dim", "truncate"}}};

const Node* given(const Node& map, std::string_view key) {
  const Node* node = map.find(key);
  return node && !node->is_null() ? node : nullptr;
}

bool one_of(std::string_view key, const std::vector<std::string_view>& keys) {
  return std::find(keys.begin(), keys.end(), key) != keys.end();
}

/// The rule that `node`, called `what` in config.json, names; of an entry that names none, the default.
const KindWords& read_kind(const Node& node, std::string_view what) {
  for (const auto& [key, value] : node.fields) {
    if (value.is_map())
      throw value.error(fmt::format("'{}' has rules of its own for {:?}", what, key),
                        "use a backbone whose layers all share one rule");
  }
  const Node* type = given(node, "rope_type") ? given(node, "rope_type") : given(node, "type");
  const std::string name = type ? type->as_string("rope_type") : "default";
  const auto* const kind =
      std::find_if(std::begin(kKinds), std::end(kKinds), [&](const KindWords& words) { return words.name == name; });
  if (kind == std::end(kKinds))
    throw type->error(fmt::format("rope_type {:?} is not supported", name), std::string(kRemedy));
  for (const auto& [key, value] : node.fields) {
    if (value.is_null() || one_of(key, kCommonKeys) || one_of(key, kind->keys)) continue;
    if (!type) throw node.error(fmt::format("'{}' has {:?} but no rope_type", what, key), "add rope_type");
    throw value.error(fmt::format("rope_type '{}' has no {:?}", name, key), "use a backbone without it");
  }
  return *kind;
}

/// transformers takes the length beside the rule before the one in it, and else all positions.
double original_positions(const Node& config, const Node& node, std::int64_t max_position) {
  constexpr std::string_view kKey = "original_max_position_embeddings";
  if (const Node* beside = given(config, kKey)) return beside->as_number(kKey, 1.0);
  return node.number_or(kKey, static_cast<double>(max_position), 1.0);
}

double attention_factor_of(const Node& node, double factor) {
  if (const Node* said = given(node, "attention_factor")) return said->as_number("attention_factor", 0.0);
  const auto scale = [factor](double weight) { return factor <= 1 ? 1.0 : 0.1 * weight * std::log(factor) + 1.0; };
  const double mscale = node.number_or("mscale", 0.0), all_dim = node.number_or("mscale_all_dim", 0.0);
  return mscale != 0 && all_dim != 0 ? scale(mscale) / scale(all_dim) : scale(1.0);
}

RopeScaling read_scaling(const Node& config, const Node& node, RopeKind kind, std::int64_t max_position) {
  RopeScaling scaling;
  scaling.kind = kind;
  if (kind == RopeKind::plain) return scaling;
  if (kind == RopeKind::linear) {
    scaling.factor = node.number_at("factor", kLeastFactor);
    return scaling;
  }
  scaling.original_max_position = original_positions(config, node, max_position);
  if (kind == RopeKind::llama3) {
    scaling.factor = node.number_at("factor", kLeastFactor);
    scaling.low_frequency_factor = node.number_at("low_freq_factor", 0.0);
    scaling.high_frequency_factor = node.number_at("high_freq_factor", 0.0);
    if (scaling.high_frequency_factor <= scaling.low_frequency_factor)
      throw node.error("high_freq_factor is not above low_freq_factor", "mend config.json");
    return scaling;
  }
  // A factor of null is what the positions have grown by.
  scaling.factor = node.at("factor").is_null() ? static_cast<double>(max_position) / scaling.original_max_position
                                               : node.number_at("factor", kLeastFactor);
  const auto or_default = [&](std::string_view key, double otherwise) {
    const double number = node.number_or(key, otherwise, 0.0);
    return number == 0 ? otherwise : number;
  };
  scaling.beta_fast = or_default("beta_fast", scaling.beta_fast);
  scaling.beta_slow = or_default("beta_slow", scaling.beta_slow);
  // transformers takes null for false here.
  if (const Node* truncate = node.find("truncate"))
    scaling.truncate = !truncate->is_null() && truncate->as_bool("truncate");
  scaling.attention_factor = attention_factor_of(node, scaling.factor);
  return scaling;
}

double theta_in(const Node& node) {
  return node.as_number("rope_theta", 1.0);
}

/// The map of one form, or null where that form is not used.
const Node* form(const Node& config, std::string_view key) {
  const Node* node = given(config, key);
  if (!node) return nullptr;
  if (!node->is_map()) throw node->error(fmt::format("'{}' is no map", key), "mend config.json");
  return node->fields.empty() ? nullptr : node;
}

Rope read_form(const Node& config, const Node& node, std::string_view what, std::optional<double> outer_theta,
               std::int64_t max_position) {
  const KindWords& words = read_kind(node, what);
  if (const Node* part = given(node, "partial_rotary_factor"); part && part->as_number("partial_rotary_factor") != 1)
    throw part->error("'partial_rotary_factor' is not supported", "use a backbone whose heads turn as a whole");
  Rope rope;
  if (const Node* inner = given(node, "rope_theta")) {
    rope.theta = theta_in(*inner);
  } else if (outer_theta) {
    rope.theta = *outer_theta;
  } else if (what == "rope_parameters") {
    throw node.error("'rope_parameters' has no rope_theta", "add the theta that the backbone was trained with");
  }
  rope.scaling = read_scaling(config, node, words.kind, max_position);
  if (words.kind == RopeKind::yarn && rope.theta <= 1)
    throw node.error("yarn needs a rope_theta above 1", "mend config.json");
  return rope;
}

}  // namespace

Rope read_rope(const Node& config, std::int64_t max_position) {
  const Node* outer = given(config, "rope_theta");
  const std::optional<double> theta = outer ? std::optional(theta_in(*outer)) : std::nullopt;
  const Node* scaling = form(config, "rope_scaling");
  const Node* parameters = form(config, "rope_parameters");
  if (!scaling && !parameters) {
    Rope rope;
    rope.theta = theta.value_or(rope.theta);
    return rope;
  }
  if (!scaling) return read_form(config, *parameters, "rope_parameters", theta, max_position);
  const Rope rope = read_form(config, *scaling, "rope_scaling", theta, max_position);
  if (parameters && !(read_form(config, *parameters, "rope_parameters", theta, max_position) == rope))
    throw parameters->error("'rope_parameters' and 'rope_scaling' say different things", "keep one of them");
  return rope;
}

}  // namespace braid::costmodel
