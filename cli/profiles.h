#pragma once

#include "cli/options.h"
#include "exec/measure.h"

namespace braid::cli {

/// The profile that planning `workload` on `cluster` needs: --profile, the file that the cluster names, or for "cpu"
/// the one measured before on this machine, measured now when there is none.
costmodel::Profile profile_for(const CommonFlags& flags, const workload::Workload& workload,
                               const workload::Cluster& cluster);

/// What a profile for this workload must cover.
exec::MeasureRequest measure_request(const workload::Workload& workload);

/// Where profile_for keeps what it measures; the name tells machine, libraries, backbone, adapters, threads and ranks
/// apart.
std::filesystem::path cached_profile(const workload::Workload& workload, int threads, std::int64_t ranks);

/// Measures on `ranks` ranks of `threads` threads, under mpirun where there are several, and writes the file.
void measure_into(const std::filesystem::path& file, const CommonFlags& flags,
                  const std::filesystem::path& workload_file, int threads, std::int64_t ranks);

}  // namespace braid::cli
