#pragma once

#include <span>
#include <vector>

#include "costmodel/profile/profile.h"

namespace braid::costmodel {

/// Entries for every operator that layers of `backbone` with these adapters have, at token counts that double up to
/// `most_tokens` (attention: at context lengths that double up to `longest_context`), from the roofline of the
/// profile's device. Each says what it was derived from.
std::vector<ProfileEntry> derived_entries(const Profile& profile, const BackboneShape& backbone,
                                          std::span<const AdapterShape> adapters, std::int64_t most_tokens,
                                          std::int64_t longest_context);

/// Where two profiles answer the same question differently.
struct Disagreement {
  ProfileEntry entry;        ///< of the first
  double other_seconds = 0;  ///< the second's answer

  /// The second over the first.
  double ratio() const { return entry.seconds > 0 ? other_seconds / entry.seconds : other_seconds > 0 ? 1e9 : 1; }
};

/// Asks `other` what each entry of `first` says. What `other` cannot answer is left out; `unanswered` counts it.
std::vector<Disagreement> compare_profiles(const Profile& first, const Profile& other, std::int64_t& unanswered);

}  // namespace braid::costmodel
