#pragma once

#include "base/node.h"
#include "costmodel/shapes/backbone.h"

namespace braid::workload {

/// A backbone's shape as plan.json embeds it, and the same shape read back.
std::string to_json(const costmodel::BackboneShape& shape);
costmodel::BackboneShape backbone_from(const Node& node);

}  // namespace braid::workload
