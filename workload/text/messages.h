#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/node.h"
#include "workload/text/message.h"

namespace braid::workload {

using Conversation = std::vector<Message>;

/// Called with the name of a key that is not read.
using Unread = std::function<void(const std::string& key)>;

/// The turns of a list, which the row calls `what`. A turn has a role and a content (or ShareGPT's from and value):
/// - roles are system (also developer), user (human), assistant (gpt, model, bot) and tool (function, observation,
///   ipython, tool_response), and come out as the first of these words;
/// - content is text, a list of text parts, which are joined, or null, which is empty;
/// - weight is what the loss of an assistant's turn counts: 0 takes it out, below 0 teaches away from it.
/// Keys that change nothing (an id, a date) are told to `unread`; others are refused by name, with what to do.
/// Throws Error "FILE:LINE: what; remedy".
Conversation read_messages(const Node& list, std::string_view what, const Unread& unread);

/// The text of a string. Throws Error for anything else; `what` names it.
std::string json_string(const Node& node, std::string_view what);

/// What a loss counts: a finite number. Throws Error for anything else; `what` names it.
float read_loss_weight(const Node& node, std::string_view what);

/// Null, or an empty text, list or map: as good as not there.
bool is_blank(const Node& node);

}  // namespace braid::workload
