#include "planner/policies/registry.h"

#include <algorithm>
#include <set>

#include "base/error.h"

namespace braid::planner {
namespace {

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (;;) {
    const auto end = text.find(separator);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

std::string describe(const PolicyOption& option) {
  return fmt::format("{}={}{}", option.name, fmt::join(option.values, "|"), option.multiple_of > 0 ? "|NUMBER" : "");
}

std::vector<std::string> describe(const std::vector<PolicyOption>& options) {
  std::vector<std::string> lines;
  for (const PolicyOption& option : options) lines.push_back(describe(option));
  return lines;
}

/// Short enough for 64 bits.
bool is_positive_multiple(std::string_view text, std::int64_t unit) {
  if (unit == 0 || text.empty() || text.size() > 9 || text.front() == '0') return false;
  if (text.find_first_not_of("0123456789") != std::string_view::npos) return false;
  return std::stoll(std::string(text)) % unit == 0;
}

void set_option(const Policy& policy, std::string_view setting, std::set<std::string_view>& given,
                OptionValues& values) {
  const auto equals = setting.find('=');
  const std::string_view key = setting.substr(0, equals);
  const std::vector<PolicyOption> options = policy.options();
  const auto option = std::find_if(options.begin(), options.end(),
                                   [&](const PolicyOption& candidate) { return candidate.name == key; });
  if (option != options.end() && equals == std::string_view::npos)
    throw error("policy {}: option {} has no value; give {}", policy.name(), key, describe(*option));
  if (option == options.end()) {
    throw error("policy {} has no option '{}'; its options: {}", policy.name(), setting,
                fmt::join(describe(options), ", "));
  }
  const std::string_view value = setting.substr(equals + 1);
  if (std::find(option->values.begin(), option->values.end(), value) == option->values.end() &&
      !is_positive_multiple(value, option->multiple_of)) {
    std::string numbers;
    if (option->multiple_of > 0) numbers = fmt::format(", or a positive multiple of {}", option->multiple_of);
    throw error("policy {}: '{}' is not a value of {}; give one of: {}{}", policy.name(), value, key,
                fmt::join(option->values, ", "), numbers);
  }
  if (!given.insert(key).second) throw error("policy {}: option {} is given twice; keep one", policy.name(), key);
  for (auto& [name, current] : values) {
    if (name == key) current = value;
  }
}

}  // namespace

const std::vector<std::unique_ptr<Policy>>& policies() {
  static const std::vector<std::unique_ptr<Policy>> all = [] {
    std::vector<std::unique_ptr<Policy>> made;
    made.push_back(make_hf_peft());
    made.push_back(make_nemo());
    made.push_back(make_megatron_fsdp());
    made.push_back(make_megatron_pp());
    made.push_back(make_gpipe());
    made.push_back(make_sl_peft());
    made.push_back(make_mlora());
    made.push_back(make_task_fused());
    made.push_back(make_task_sequential());
    made.push_back(make_lobra());
    made.push_back(make_lobra_sequential());
    made.push_back(make_lorafusion());
    made.push_back(make_muxtune());
    made.push_back(make_braid());
    return made;
  }();
  return all;
}

PolicyChoice parse_policy(std::string_view text) {
  const std::vector<std::string_view> parts = split(text, ':');
  PolicyChoice choice;
  std::vector<std::string_view> names;
  for (const std::unique_ptr<Policy>& policy : policies()) {
    names.push_back(policy->name());
    if (policy->name() == parts[0]) choice.policy = policy.get();
  }
  if (!choice.policy) throw error("unknown policy '{}'; known: {}", parts[0], fmt::join(names, ", "));
  for (const PolicyOption& option : choice.policy->options())
    choice.options.emplace_back(option.name, option.values.front());
  std::set<std::string_view> given;
  for (std::size_t i = 1; i < parts.size(); ++i) set_option(*choice.policy, parts[i], given, choice.options);
  return choice;
}

std::vector<PolicyChoice> parse_policies(std::string_view text) {
  std::vector<PolicyChoice> choices;
  for (const std::string_view part : split(text, ',')) choices.push_back(parse_policy(part));
  return choices;
}

}  // namespace braid::planner
