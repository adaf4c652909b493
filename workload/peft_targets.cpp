#include <algorithm>
#include <cctype>
#include <functional>
#include <memory>
#include <optional>

#include "base/regex.h"
#include "costmodel/shapes/family.h"
#include "workload/peft_config.h"

/// Names and patterns of modules.
namespace braid::workload {
namespace {

using costmodel::AdapterShape;
using costmodel::kModuleCount;
using costmodel::kModules;
using costmodel::Module;
using costmodel::module_name;

constexpr std::string_view kAllLinear = "all-linear";

std::string listed(const ModuleNames& names) {
  std::vector<std::string_view> all;
  for (const Module module : names.own_modules()) all.push_back(costmodel::target_name(names.architecture, module));
  return fmt::format("{}", fmt::join(all, ", "));
}

using Selects = std::function<bool(std::string_view name)>;

bool selects_any(const Selects& selects, const std::vector<std::string>& all) {
  return std::any_of(all.begin(), all.end(), selects);
}

/// What `selects` says of a module in every layer alike.
bool selects_module(const Node& node, Module module, const ModuleNames& names, const Selects& selects) {
  std::int64_t selected = 0;
  for (std::int64_t layer = 0; layer < names.layers; ++layer)
    selected += selects_any(selects, names.full_names(layer, module));
  if (selected != 0 && selected != names.layers)
    throw node.error(
        fmt::format("target_modules selects {} in {} of {} layers", module_name(module), selected, names.layers),
        "adapters of some layers alone are not supported; select a module in all of them");
  return selected > 0;
}

void refuse_outside_layers(const Node& node, const ModuleNames& names, const Selects& selects) {
  const costmodel::FamilyNames& family = costmodel::family_names(names.architecture);
  for (const std::string& name :
       {std::string(costmodel::kHeadName), fmt::format("{}{}", family.model, family.embedding),
        fmt::format("{}{}", family.model, family.positions)}) {
    if (name != family.model && selects(name))
      throw node.error(fmt::format("target_modules selects {}", name),
                       "adapters sit on the linear layers of decoder layers alone; leave it out");
  }
}

bool ends_as(std::string_view name, std::string_view end) {
  return name == end || (name.size() > end.size() && name.ends_with(end) && name[name.size() - end.size() - 1] == '.');
}

std::string lower_case(std::string text) {
  for (char& letter : text) letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  return text;
}

/// Two adapters on one product cannot be told apart in PEFT's file.
void check_apart(const Node& node, const std::array<bool, kModuleCount>& targets) {
  const auto has = [&](Module module) { return targets[static_cast<std::size_t>(module)]; };
  if (has(Module::qkv) && (has(Module::q) || has(Module::k) || has(Module::v)))
    throw node.error("target_modules selects c_attn and parts of it",
                     "keep c_attn, which is q_proj, k_proj and v_proj");
}

std::array<bool, kModuleCount> targets_of_expression(const Node& node, const ModuleNames& names) {
  std::optional<Regex> expression;
  try {
    expression.emplace(node.text);
  } catch (const BrokenRegex& broken) {
    throw node.error("target_modules " + std::string(broken.what()),
                     fmt::format("give a list of {}, or {}", listed(names), kAllLinear));
  }
  const Selects selects = [&](std::string_view name) { return expression->matches(name); };
  refuse_outside_layers(node, names, selects);
  std::array<bool, kModuleCount> targets{};
  for (const Module module : names.modules())
    targets[static_cast<std::size_t>(module)] = selects_module(node, module, names, selects);
  if (std::find(targets.begin(), targets.end(), true) == targets.end())
    throw node.error(fmt::format("the regular expression '{}' matches no whole name, such as {}", node.text,
                                 names.full_names(0, names.own_modules().front()).front()),
                     fmt::format("begin it with .* perhaps, or give a list of {}", listed(names)));
  check_apart(node, targets);
  return targets;
}

std::array<bool, kModuleCount> targets_of_list(const Node& node, const ModuleNames& names) {
  std::array<bool, kModuleCount> targets{};
  if (node.items.empty())
    throw node.error("target_modules is empty",
                     fmt::format("name at least one module, such as {}",
                                 costmodel::target_name(names.architecture, names.own_modules().front())));
  std::vector<std::string> ends;
  for (const Node& item : node.items) {
    const std::string end = item.as_string("target_modules");
    if (std::find(ends.begin(), ends.end(), end) != ends.end())
      throw item.error(fmt::format("module '{}' is given twice", end), "keep one");
    const Selects selects = [&](std::string_view name) { return ends_as(name, end); };
    refuse_outside_layers(item, names, selects);
    if (costmodel::family_names(names.architecture).name(Module::gate).empty() && end == module_name(Module::gate))
      throw item.error("this backbone has no gate_proj", fmt::format("valid: {}", listed(names)));
    bool found = false;
    for (std::int64_t layer = 0; layer < names.layers && !found; ++layer) {
      for (const Module module : names.modules())
        found = found || selects_any(selects, names.full_names(layer, module));
    }
    if (!found) throw item.error(fmt::format("unknown module '{}'", end), fmt::format("valid: {}", listed(names)));
    ends.push_back(end);
  }
  const Selects selects = [&](std::string_view name) {
    return std::any_of(ends.begin(), ends.end(), [&](const std::string& end) { return ends_as(name, end); });
  };
  for (const Module module : names.modules())
    targets[static_cast<std::size_t>(module)] = selects_module(node, module, names, selects);
  check_apart(node, targets);
  return targets;
}
struct Pattern {
  const Node& node;
  std::string_view key;
  std::string_view example;
};

/// For each target the value of the first key that its name ends with, as a regular expression; 0 where there is none,
/// or where it is `otherwise`.
template <typename Value, typename Read>
std::array<Value, kModuleCount> pattern_from(const Pattern& pattern, const AdapterShape& adapter,
                                             const ModuleNames& names, Value otherwise, const Read& read) {
  const auto& [node, key, example] = pattern;
  std::array<Value, kModuleCount> values{};
  if (node.is_null()) return values;
  if (!node.is_map()) throw node.error(fmt::format("{} is no map", key), fmt::format("give {}", example));
  struct Entry {
    std::unique_ptr<Regex> name;
    Value value;
    bool used = false;
  };
  std::vector<Entry> entries;
  for (const auto& [name, value] : node.fields) {
    try {
      entries.push_back({std::make_unique<Regex>(fmt::format("(.*\\.)?({})", name)), read(value)});
    } catch (const BrokenRegex& broken) {
      throw value.error(fmt::format("{}: {}", key, broken.what()), "give a module's name, such as q_proj");
    }
  }
  for (const Module module : kModules) {
    if (!adapter.has(module)) continue;
    std::optional<Value> everywhere;
    for (std::int64_t layer = 0; layer < names.layers; ++layer) {
      const std::vector<std::string> all = names.full_names(layer, module);
      Value value = otherwise;
      for (Entry& entry : entries) {
        if (!selects_any([&](std::string_view name) { return entry.name->matches(name); }, all)) continue;
        entry.used = true, value = entry.value;
        break;
      }
      if (everywhere.value_or(value) != value)
        throw node.error(
            fmt::format("{} gives {} one value in some layers and another in others", key, module_name(module)),
            "give a module the same in all layers");
      everywhere = value;
    }
    if (everywhere != otherwise) values[static_cast<std::size_t>(module)] = *everywhere;
  }
  for (std::size_t i = 0; i < entries.size(); ++i) {
    if (!entries[i].used)
      throw node.fields[i].second.error(
          fmt::format("{}: '{}' is none of the targets {}", key, node.fields[i].first, described(adapter.targets)),
          "remove it, or add the module to target_modules");
  }
  return values;
}
}  // namespace

std::string described(const std::array<bool, kModuleCount>& targets) {
  std::vector<std::string_view> all;
  for (const Module module : kModules) {
    if (targets[static_cast<std::size_t>(module)]) all.push_back(module_name(module));
  }
  return fmt::format("{}", fmt::join(all, " "));
}
std::vector<Module> ModuleNames::own_modules() const {
  std::vector<Module> own;
  for (const Module module : kModules) {
    if (!costmodel::family_names(architecture).name(module).empty()) own.push_back(module);
  }
  return own;
}

std::vector<Module> ModuleNames::modules() const {
  std::vector<Module> all = own_modules();
  if (!costmodel::family_names(architecture).qkv.empty()) all.insert(all.begin(), {Module::q, Module::k, Module::v});
  return all;
}

std::vector<std::string> ModuleNames::full_names(std::int64_t layer, Module module) const {
  using costmodel::Architecture;
  const std::string_view own = costmodel::family_names(architecture).name(module),
                         llama = costmodel::family_names(Architecture::llama).name(module);
  std::vector<std::string> all;
  if (!own.empty()) all.push_back(costmodel::layer_prefix(architecture, layer) + std::string(own));
  if (own != llama && !llama.empty())
    all.push_back(costmodel::layer_prefix(Architecture::llama, layer) + std::string(llama));
  // Plans name it so.
  if (module == Module::qkv)
    all.push_back(costmodel::layer_prefix(architecture, layer) + std::string(module_name(module)));
  return all;
}

std::array<bool, kModuleCount> attention_targets(const ModuleNames& names) {
  std::array<bool, kModuleCount> targets{};
  for (const Module module : names.own_modules())
    targets[static_cast<std::size_t>(module)] = module < Module::gate || module == Module::qkv;
  return targets;
}

std::array<bool, kModuleCount> targets_from(const Node& node, const ModuleNames& names) {
  if (!node.is_scalar()) {
    node.sequence("target_modules");
    return targets_of_list(node, names);
  }
  if (lower_case(node.text) != kAllLinear) return targets_of_expression(node, names);
  std::array<bool, kModuleCount> targets{};
  for (const Module module : names.own_modules()) targets[static_cast<std::size_t>(module)] = true;
  return targets;
}

std::array<bool, kModuleCount> ia3_targets(const ModuleNames& names) {
  std::array<bool, kModuleCount> targets{};
  for (const Module module : names.own_modules())
    targets[static_cast<std::size_t>(module)] =
        module == Module::k || module == Module::v || module == Module::qkv || module == Module::down;
  return targets;
}

bool scales_down_input(const Node& node, const ModuleNames& names) {
  if (node.is_null() || (node.is_sequence() && node.items.empty())) return false;
  const std::array<bool, kModuleCount> targets = targets_from(node, names);
  for (const Module module : kModules) {
    if (targets[static_cast<std::size_t>(module)] && module != Module::down)
      throw node.error(fmt::format("feedforward_modules names {}, whose input other modules read too",
                                   costmodel::target_name(names.architecture, module)),
                       fmt::format("name {} alone", costmodel::target_name(names.architecture, Module::down)));
  }
  return targets[static_cast<std::size_t>(Module::down)];
}

std::array<double, kModuleCount> alphas_from(const Node& node, const AdapterShape& adapter, const ModuleNames& names) {
  return pattern_from<double>({node, "alpha_pattern", "{q_proj: 64}, a module's name and its alpha"}, adapter, names,
                              adapter.alpha, [](const Node& alpha) {
                                const double value = alpha.as_number("alpha_pattern");
                                if (value <= 0)
                                  throw alpha.error(fmt::format("alpha_pattern {} is not usable", value),
                                                    "give an alpha above 0");
                                return value;
                              });
}

std::array<std::int64_t, kModuleCount> ranks_from(const Node& node, const AdapterShape& adapter,
                                                  const ModuleNames& names) {
  return pattern_from<std::int64_t>({node, "rank_pattern", "{q_proj: 8}, a module's name and its rank"}, adapter, names,
                                    adapter.rank,
                                    [](const Node& rank) { return rank.as_integer("rank_pattern", 1, kMostRank); });
}

}  // namespace braid::workload
