#pragma once

#include <optional>

#include "cli/support/options.h"
#include "cli/support/session.h"

namespace braid::cli {

/// What measuring is directed by: what will be planned. What it refers to outlives it.
struct PlannedWork {
  const workload::Workload& workload;
  const workload::Cluster& cluster;
  const Data& data;
  const std::vector<planner::PolicyChoice>& choices;
};

/// The profile that planning needs: --profile, the file that the cluster names, or for "cpu" what was measured on this
/// machine before and for these plans, more of which is measured now where that is not enough. Throws Error for
/// --profile of another machine unless --foreign-profile.
costmodel::Profile profile_for(const CommonFlags& flags, const PlannedWork& planned);

/// The profile that `plan`, made with the one that profile_for gave, is to be made with anew: a pilot of the plan moved
/// it. Nothing where the prediction holds or held before, or where no pilot is run: the plan is not for this machine as
/// it was measured, this build cannot execute it, there are lengths in place of data, or no time is left.
/// `seconds_spent` of
/// --profile-budget have gone into measuring and planning.
std::optional<costmodel::Profile> profile_after_pilot(const CommonFlags& flags, const PlannedWork& planned,
                                                      const planner::Plan& plan, double seconds_spent);

/// --profile, the file that the cluster names, or the datasheet of its GPUs; nothing for "cpu" without a file.
std::optional<costmodel::Profile> given_profile(const CommonFlags& flags, const workload::Cluster& cluster);

/// Throws Error unless the profile was measured here, with these libraries, or `flags` say that it need not be. `file`
/// is named in the message.
void check_machine(const costmodel::Profile& profile, const std::string& file, const CommonFlags& flags);

/// Of the cluster's CPU ranks those that plans of these policies may use: all where there are replicas, else as many as
/// there are stages and shards.
std::int64_t ranks_at_work(const CommonFlags& flags, const workload::Cluster& cluster,
                           const costmodel::BackboneShape& backbone, const std::vector<planner::PolicyChoice>& choices);

/// Where profile_for keeps what it measures; the name tells machine, libraries, backbone, threads and ranks apart.
std::filesystem::path cached_profile(const workload::Workload& workload, const std::string& backend, int threads,
                                     std::int64_t ranks);

/// Measures on `ranks` ranks of `threads` threads what plans would use, under mpirun where there are several, adds it
/// to what `known` holds (empty: nothing), and writes the file. Rank 0 alone reads `planned`.
void measure_into(const std::filesystem::path& file, const std::filesystem::path& known, const CommonFlags& flags,
                  const PlannedWork& planned, int threads, std::int64_t ranks);

/// Throws Error for a backbone that has no weights here to measure with.
void check_measurable(const workload::Workload& workload);

}  // namespace braid::cli
