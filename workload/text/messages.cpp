#include "workload/text/messages.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace braid::workload {
namespace {

struct Alias {
  std::string_view word, role;
};

constexpr std::array<Alias, 14> kRoles = {{{"system", "system"},
                                           {"developer", "system"},
                                           {"user", "user"},
                                           {"human", "user"},
                                           {"assistant", "assistant"},
                                           {"gpt", "assistant"},
                                           {"model", "assistant"},
                                           {"bot", "assistant"},
                                           {"chatgpt", "assistant"},
                                           {"tool", "tool"},
                                           {"function", "tool"},
                                           {"observation", "tool"},
                                           {"ipython", "tool"},
                                           {"tool_response", "tool"}}};

constexpr std::string_view kValidRoles =
    "valid: system (developer), user (human), assistant (gpt, model, bot, chatgpt), tool (function, observation, "
    "ipython, "
    "tool_response)";

/// Keys of a message that say nothing of its tokens.
constexpr std::array<std::string_view, 12> kHarmless = {"id",        "message_id", "parent_id", "tool_call_id",
                                                        "timestamp", "created_at", "date",      "lang",
                                                        "language",  "index",      "turn",      "tokens"};

constexpr std::string_view kWayOut = "write it into the content as your model's chat template would, or give input_ids";

template <std::size_t count>
bool is_one_of(std::string_view word, const std::array<std::string_view, count>& words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

std::string read_role(const Node& node) {
  const std::string word = json_string(node, "role");
  if (word == "function_call") throw node.error("a turn that calls a function is not laid out", std::string(kWayOut));
  const auto alias = std::find_if(kRoles.begin(), kRoles.end(), [&](const Alias& each) { return each.word == word; });
  if (alias == kRoles.end()) throw node.error(fmt::format("unknown role '{}'", word), std::string(kValidRoles));
  return std::string(alias->role);
}

std::string read_part(const Node& part) {
  if (!part.is_map()) return json_string(part, "content");
  const std::string type = part.find("type") ? json_string(part.at("type"), "type") : "text";
  if (type != "text")
    throw part.error(fmt::format("a content part is of type '{}'", type), "give parts of type text alone");
  return json_string(part.at("text"), "text");
}

std::string read_content(const Node& node) {
  if (node.is_null()) return "";
  if (!node.is_sequence()) return json_string(node, "content");
  std::string text;
  for (const Node& part : node.items) text += read_part(part);
  return text;
}

/// What the turn's loss counts.
float read_weight(const Node& node, const Message& message) {
  const float weight = read_loss_weight(node, "weight");
  if (weight != 0 && message.role != "assistant")
    throw node.error(fmt::format("'weight' is {} in a turn of the role {}", weight, message.role),
                     "leave it out: the loss is taken of the assistant's turns alone");
  return weight;
}

/// The one of two names that the message has.
const Node& either(const Node& message, std::string_view name, std::string_view other) {
  const Node* first = message.find(name);
  const Node* second = message.find(other);
  if (first && second)
    throw second->error(fmt::format("'{}' and '{}' are two names of one thing", name, other), "keep one");
  return second ? *second : message.at(name);
}

void check_key(const std::string& key, const Node& value, const Unread& unread) {
  if (key == "role" || key == "from" || key == "content" || key == "value" || key == "weight" || value.is_null())
    return;
  if (is_one_of(key, kHarmless)) return unread("a message's " + key);
  if (is_blank(value)) return;
  if (key == "name" || key == "tool_calls" || key == "function_call")
    throw value.error(fmt::format("'{}' of a message is not laid out", key), std::string(kWayOut));
  throw value.error(fmt::format("a message's '{}' is not known", key),
                    "remove it if it changes nothing, else " + std::string(kWayOut));
}

}  // namespace

bool is_blank(const Node& node) {
  return node.is_null() || (node.is_sequence() && node.items.empty()) || (node.is_map() && node.fields.empty()) ||
         (node.is_scalar() && node.quoted && node.text.empty());
}

std::string json_string(const Node& node, std::string_view what) {
  if (node.is_scalar() && node.quoted) return node.text;
  if (node.is_scalar()) throw node.error(fmt::format("'{}' is {}, not a string", what, node.text), "put it in quotes");
  throw node.error(fmt::format("'{}' is {}, not a string", what,
                               node.is_null()       ? "null"
                               : node.is_sequence() ? "a list"
                                                    : "an object"),
                   "give a string");
}

float read_loss_weight(const Node& node, std::string_view what) {
  constexpr double kMost = 1e6;
  if (node.quoted) throw node.error(fmt::format("'{}' is a string", what), "give a number");
  const double weight = node.as_number(what);
  if (!(std::abs(weight) <= kMost))
    throw node.error(fmt::format("'{}' is {}", what, weight), "give a number from -1e6 to 1e6");
  return static_cast<float>(weight);
}

Conversation read_messages(const Node& list, std::string_view what, const Unread& unread) {
  if (list.sequence(what).empty()) throw list.error(fmt::format("'{}' is empty", what), "give a turn");
  Conversation turns;
  for (const Node& node : list.items) {
    if (!node.is_map()) throw node.error(fmt::format("a turn of '{}' is no object", what), "give role and content");
    for (const auto& [key, value] : node.fields) check_key(key, value, unread);
    Message& turn = turns.emplace_back();
    turn.role = read_role(either(node, "role", "from"));
    turn.content = read_content(either(node, "content", "value"));
    const Node* weight = node.find("weight");
    if (weight && !weight->is_null()) turn.weight = read_weight(*weight, turn);
  }
  return turns;
}

}  // namespace braid::workload
