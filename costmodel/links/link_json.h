#pragma once

#include <nlohmann/json.hpp>

#include "base/node.h"
#include "costmodel/links/link.h"

namespace braid::costmodel {

/// The form in profiles and plans, and the same read back.
nlohmann::ordered_json json_of(const Link& link);
nlohmann::ordered_json json_of(const Interconnect& interconnect);
Link link_from(const Node& node);
Interconnect interconnect_from(const Node& node);

}  // namespace braid::costmodel
