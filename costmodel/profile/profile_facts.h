#pragma once

#include <vector>

#include "costmodel/profile/cost_model.h"

namespace braid::costmodel {

/// What a measured table does that no model of it may: facts, not faults.
struct ProfileFacts {
  std::int64_t neighbours = 0;    ///< pairs of points next to one another on a curve
  std::int64_t falls = 0;         ///< of them, those where more work takes less time
  double largest_fall = 0;        ///< as a share of the larger time
  std::int64_t shards = 0;        ///< linear layers measured whole and as an n-th of their depth or columns
  std::int64_t superlinear = 0;   ///< of them, those where n shards take less than the whole
  std::int64_t beats_memory = 0;  ///< kernels that move numbers faster than the device's memory could: cache-resident
  std::int64_t moves = 0;         ///< kernels that move numbers, where the device is known
  Departure largest_departure;    ///< of the isotonic fit that plans are made with
};

ProfileFacts facts_of(const Profile& profile);

/// A measured point, and what its curve says without it.
struct HeldOutPoint {
  ProfileEntry entry;
  double predicted = 0;
};

/// Takes each measured point that has neighbours on both sides of its curve away in turn, and asks the rest.
std::vector<HeldOutPoint> hold_out(const Profile& profile);

}  // namespace braid::costmodel
