#pragma once

#include <string>

namespace braid::workload {

struct Message {
  std::string role;  ///< system, user, assistant or tool
  std::string content;
  float weight = 1;  ///< what the loss of an assistant's turn counts; 0: it is not learned

  bool learned() const { return role == "assistant" && weight != 0; }

  bool operator==(const Message&) const = default;
};

}  // namespace braid::workload
