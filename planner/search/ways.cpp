#include "planner/search/ways.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "planner/policies/registry.h"

namespace braid::planner {
namespace {

/// The most promising first; without padding, which none of them needs.
constexpr std::array<std::string_view, 11> kAtTheirBest = {"lorafusion",
                                                           "lobra:rows=bins",
                                                           "lobra",
                                                           "muxtune:alignment=packed:pad_to=none",
                                                           "mlora:pad_to=none",
                                                           "megatron-pp:pad_to=none",
                                                           "nemo:resident=false:pad_to=none",
                                                           "megatron-fsdp:pad_to=none",
                                                           "gpipe:pad_to=none",
                                                           "sl-peft:pad_to=none",
                                                           "hf-peft:resident=false:pad_to=none"};

/// Whether the policy has the option with this value, which it then gets.
bool give(PolicyChoice& choice, std::string_view option, std::string_view value) {
  for (const PolicyOption& known : choice.policy->options()) {
    if (known.name != option) continue;
    if (std::find(known.values.begin(), known.values.end(), value) == known.values.end()) return false;
    for (auto& [name, given] : choice.options) {
      if (name == option) given = value;
    }
    return true;
  }
  return false;
}

std::string_view value_or_none(const PolicyChoice& choice, std::string_view option) {
  for (const auto& [name, value] : choice.options) {
    if (name == option) return value;
  }
  return {};
}

/// With what was asked of all together; nothing where the policy has not all of it.
std::optional<PolicyChoice> as_asked(PolicyChoice choice, const PolicyChoice& united, bool on_gpus, bool at_its_best) {
  for (const std::string_view option : {"transport", "recompute"}) {
    const std::string& value = value_of(united.options, option);
    if (!give(choice, option, value) && value != "auto") return std::nullopt;
  }
  // Those without tensor parallelism are as they are.
  give(choice, "sequence_parallel", value_of(united.options, "sequence_parallel"));
  const std::string& kernels = value_of(united.options, "kernels");
  const bool fused = kernels == "fused" || (kernels == "auto" && on_gpus);
  const bool undecided = kernels == "separate" || value_or_none(choice, "kernels") == "auto";
  if (at_its_best || undecided) give(choice, "kernels", fused ? "fused" : "separate");
  return choice;
}

/// Policies that are not fit for a split or a number of microbatches of the user's say so.
bool takes(const PolicyChoice& choice, const Overrides& overrides) {
  if (!choice.policy->proposes()) return true;
  return !overrides.microbatches && choice.policy->takes(overrides.split);
}

}  // namespace

std::vector<Overrides> splits_to_search(const Overrides& overrides) {
  std::vector<Overrides> all = {overrides};
  if (overrides.split.kind == LayerSplit::Kind::balanced) {
    all.insert(all.begin(), overrides);
    all.front().split = {};
  }
  return all;
}

std::vector<Way> ways_of(const PolicyChoice& choice, const Overrides& overrides, bool on_gpus) {
  std::vector<Way> ways;
  if (!choice.policy->unites()) {
    for (Overrides& split : splits_to_search(overrides)) ways.push_back({choice, std::move(split)});
    return ways;
  }
  Overrides both = overrides;
  if (both.split.kind == LayerSplit::Kind::even) both.split.kind = LayerSplit::Kind::balanced;
  for (const std::string_view best : kAtTheirBest) {
    const std::optional<PolicyChoice> asked = as_asked(parse_policy(best), choice, on_gpus, true);
    for (const Overrides& split : splits_to_search(both)) {
      if (asked && takes(*asked, split)) ways.push_back({*asked, split});
    }
  }
  Overrides even = overrides;
  if (even.split.kind == LayerSplit::Kind::balanced) even.split = {};
  for (const auto& policy : policies()) {
    if (policy->unites()) continue;
    const std::optional<PolicyChoice> asked = as_asked(parse_policy(policy->name()), choice, on_gpus, false);
    const bool searched = asked && std::any_of(ways.begin(), ways.end(), [&](const Way& way) {
                            return way.choice.policy == asked->policy && way.choice.options == asked->options;
                          });
    if (asked && !searched && takes(*asked, even)) ways.push_back({*asked, even});
  }
  return ways;
}

}  // namespace braid::planner
