#pragma once

#include <string>

namespace braid::workload {

struct Message {
  std::string role;  ///< system, user, assistant or tool
  std::string content;
  bool learned = true;  ///< of the assistant's: whether it is supervised

  bool operator==(const Message&) const = default;
};

}  // namespace braid::workload
