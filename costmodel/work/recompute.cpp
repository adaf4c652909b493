#include "costmodel/work/recompute.h"

#include "base/error.h"
#include "base/named.h"

namespace braid::costmodel {
namespace {

constexpr RecomputeKind kRecomputeKinds[] = {RecomputeKind::none, RecomputeKind::selective, RecomputeKind::full};

}  // namespace

std::string_view name(RecomputeKind kind) {
  switch (kind) {
    case RecomputeKind::none:
      return "none";
    case RecomputeKind::selective:
      return "selective";
    case RecomputeKind::full:
      break;
  }
  return "full";
}

RecomputeKind recompute_kind_of(std::string_view name) {
  if (const auto kind = value_named(name, kRecomputeKinds)) return *kind;
  throw error("unknown recomputation '{}'; known: {}", name, names_of(kRecomputeKinds));
}

}  // namespace braid::costmodel
