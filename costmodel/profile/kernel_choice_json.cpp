#include "costmodel/profile/kernel_choice_json.h"

#include <algorithm>

#include <fmt/core.h>

namespace braid::costmodel {

nlohmann::ordered_json json_of(const KernelChoice& choice) {
  auto shape = nlohmann::ordered_json::array();
  for (const std::int64_t number : choice.shape) {
    if (number != 0) shape.push_back(number);
  }
  nlohmann::ordered_json json{
      {"op", name(choice.op)}, {"pass", name(choice.pass)}, {"shape", shape}, {"from", choice.from}};
  if (choice.to != KernelChoice().to) json["to"] = choice.to;
  return json;
}

KernelChoice kernel_choice_from(const Node& node) {
  node.allow_only({"op", "pass", "shape", "from", "to"});
  KernelChoice choice;
  const std::string op = node.string_at("op"), pass = node.string_at("pass");
  const auto possible = [&]() -> std::vector<KernelChoice> {
    for (const Operator known : {Operator::linear, Operator::attention, Operator::launch})
      if (op == name(known)) return all_of(known);
    return {};
  }();
  const auto found = std::ranges::find(possible, pass, [](const KernelChoice& one) { return name(one.pass); });
  if (found == possible.end())
    throw node.error(fmt::format("{} {} has no second kernel", op, pass),
                     "give linear or launch, forward or backward, or attention forward");
  choice = *found;
  const std::vector<Node>& shape = node.at("shape").sequence("shape");
  const std::size_t size = shape_size(choice.op).most;
  if (!shape.empty() && shape.size() != size)
    throw node.at("shape").error(fmt::format("the shape of '{}' has {} numbers", op, shape.size()),
                                 fmt::format("give {}, or none for any shape", size));
  for (std::size_t i = 0; i < shape.size(); ++i) choice.shape[i] = shape[i].as_integer("shape", 1);
  choice.from = node.integer_or("from", 0, 0);
  choice.to = node.integer_or("to", choice.to, choice.from);
  return choice;
}

}  // namespace braid::costmodel
