#pragma once

#include <string>
#include <string_view>

#include "base/node.h"
#include "workload/workload.h"

/// The words that workload files use for enumerators; private to this folder.
namespace braid::workload {

template <typename Enum>
struct Name {
  std::string_view name;
  Enum value;
};

inline constexpr Name<OnTooLong> kOnTooLong[] = {
    {"error", OnTooLong::error}, {"truncate", OnTooLong::truncate}, {"drop", OnTooLong::drop}};
inline constexpr Name<Schedule> kSchedules[] = {
    {"linear", Schedule::linear}, {"cosine", Schedule::cosine}, {"constant", Schedule::constant}};
inline constexpr Name<ObjectiveKind> kObjectives[] = {{"sft", ObjectiveKind::sft}, {"dpo", ObjectiveKind::dpo}};
inline constexpr Name<LengthDistribution::Kind> kDistributions[] = {{"lognormal", LengthDistribution::Kind::lognormal},
                                                                    {"constant", LengthDistribution::Kind::constant},
                                                                    {"uniform", LengthDistribution::Kind::uniform}};
inline constexpr Name<ChatLayout> kChatLayouts[] = {{"chatml", ChatLayout::chatml}, {"llama3", ChatLayout::llama3}};
inline constexpr Name<costmodel::Architecture> kArchitectures[] = {
    {"llama", costmodel::Architecture::llama},     {"qwen2", costmodel::Architecture::qwen2},
    {"gpt2", costmodel::Architecture::gpt2},       {"opt", costmodel::Architecture::opt},
    {"mistral", costmodel::Architecture::mistral}, {"qwen3", costmodel::Architecture::qwen3}};
inline constexpr Name<costmodel::DataType> kBaseWeights[] = {{"f32", costmodel::DataType::f32},
                                                             {"bf16", costmodel::DataType::bf16},
                                                             {"int8", costmodel::DataType::int8},
                                                             {"nf4", costmodel::DataType::nf4}};
inline constexpr Name<costmodel::Nonlinearity> kNonlinearities[] = {{"silu", costmodel::Nonlinearity::silu},
                                                                    {"gelu_tanh", costmodel::Nonlinearity::gelu_tanh},
                                                                    {"relu", costmodel::Nonlinearity::relu}};
inline constexpr Name<costmodel::RopeKind> kRopeKinds[] = {{"plain", costmodel::RopeKind::plain},
                                                           {"linear", costmodel::RopeKind::linear},
                                                           {"llama3", costmodel::RopeKind::llama3},
                                                           {"yarn", costmodel::RopeKind::yarn}};

template <typename Enum, std::size_t count>
std::string name_of(Enum value, const Name<Enum> (&names)[count]) {
  for (const Name<Enum>& entry : names) {
    if (entry.value == value) return std::string(entry.name);
  }
  BRAID_CHECK(false, "an enumerator without a name: {}", static_cast<int>(value));
  return {};
}

/// Throws Error that lists the names.
template <typename Enum, std::size_t count>
Enum value_of(const Node& node, std::string_view what, const Name<Enum> (&names)[count]) {
  const std::string text = node.as_string(what);
  std::string valid;
  for (const Name<Enum>& entry : names) {
    if (entry.name == text) return entry.value;
    valid += valid.empty() ? "" : ", ";
    valid += entry.name;
  }
  throw node.error(fmt::format("unknown {} '{}'", what, text), "valid: " + valid);
}

}  // namespace braid::workload
